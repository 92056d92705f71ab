/* Formats of JSON Schema as patterns, each anchored. They follow the RFCs as far as a regular language goes: days fit their
 * months, leap years included. Lengths of labels and local parts are not counted: maxLength is for that. */
#include "grammar/schema.h"

#define BIG_MONTHS "(0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
#define SMALL_MONTHS "(0[469]|11)-(0[1-9]|[12][0-9]|30)"
#define LEAP_YEAR "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
#define DATE "([0-9]{4}-(" BIG_MONTHS "|" SMALL_MONTHS "|02-(0[1-9]|1[0-9]|2[0-8]))|" LEAP_YEAR "-02-29)"
#define TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define OCTET "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define IPV4 OCTET "(\\." OCTET "){3}"
#define H16 "[0-9a-fA-F]{1,4}"
#define LS32 "(" H16 ":" H16 "|" IPV4 ")"
#define IPV6 \
    "((" H16 ":){6}" LS32 "|::(" H16 ":){5}" LS32 "|(" H16 ")?::(" H16 ":){4}" LS32 "|((" H16 ":){0,1}" H16 ")?::(" H16 \
    ":){3}" LS32 "|((" H16 ":){0,2}" H16 ")?::(" H16 ":){2}" LS32 "|((" H16 ":){0,3}" H16 ")?::" H16 ":" LS32 "|((" H16 \
    ":){0,4}" H16 ")?::" LS32 "|((" H16 ":){0,5}" H16 ")?::" H16 "|((" H16 ":){0,6}" H16 ")?::)"
#define LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?"
#define HOST LABEL "(\\." LABEL ")*"
#define ATOM "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+"
#define PCHAR "([a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})"
#define PATH_TAIL "(/" PCHAR "*)*(\\?(" PCHAR "|[/?])*)?(#(" PCHAR "|[/?])*)?"
#define AUTHORITY "([a-zA-Z0-9._~!$&'()*+,;=:-]|%[0-9a-fA-F]{2})"
#define URI "[a-zA-Z][a-zA-Z0-9+.-]*:(//(" AUTHORITY "*@)?(" AUTHORITY "+)(:[0-9]{1,5})?|" PCHAR "+)" PATH_TAIL

const char *clt_schema_format(const char *name) {
    static const struct { const char *name, *pattern; } formats[] = {
        {"date", "^" DATE "$"},
        {"time", "^" TIME "$"},
        {"date-time", "^" DATE "T" TIME "$"},
        {"duration", "^P([0-9]{1,9}W|[0-9]{1,9}Y([0-9]{1,9}M([0-9]{1,9}D)?)?(T" "([0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?|"
                     "[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S))?|[0-9]{1,9}M([0-9]{1,9}D)?|[0-9]{1,9}D|"
                     "([0-9]{1,9}D)?T([0-9]{1,9}H([0-9]{1,9}M([0-9]{1,9}S)?)?|[0-9]{1,9}M([0-9]{1,9}S)?|[0-9]{1,9}S))$"},
        {"email", "^" ATOM "(\\." ATOM ")*@" HOST "$"},
        {"hostname", "^" HOST "$"},
        {"ipv4", "^" IPV4 "$"},
        {"ipv6", "^" IPV6 "$"},
        {"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"},
        {"uri", "^" URI "$"},
        {"uri-reference", "^(" URI "|" PATH_TAIL ")$"},
        {"json-pointer", "^(/([^/~]|~[01])*)*$"},
        {"byte", "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
        /* what these say is not about the text */
        {"password", ""}, {"binary", ""}, {"path", ""}, {"file-path", ""}, {"directory-path", ""}, {"int32", ""},
        {"int64", ""}, {"float", ""}, {"double", ""}, {"string", ""}, {"text", ""}, {"regex", NULL},
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(name, formats[i].name)) return formats[i].pattern;
    return NULL;
}
