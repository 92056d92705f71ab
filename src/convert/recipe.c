/* Recipes as tables: the file types, and the rules by which some matrices get more bits than most. */
#include "convert/recipe.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef enum mix {
    PLAIN, M_Q4_0, M_Q5_0, M_Q2_K, M_Q2_K_S, M_Q3_K_M, M_Q3_K_L, M_Q4_K_S, M_Q4_K_M, M_Q5_K_M, M_IQ4
} mix;

static const struct entry {
    clt_recipe recipe;
    mix rules;
} recipes[] = {
    {{"F32", CLT_F32, 0}, PLAIN},        {{"F16", CLT_F16, 1}, PLAIN},         {{"BF16", CLT_BF16, 32}, PLAIN},
    {{"Q4_0", CLT_Q4_0, 2}, M_Q4_0},     {{"Q4_1", CLT_Q4_1, 3}, PLAIN},       {{"Q5_0", CLT_Q5_0, 8}, M_Q5_0},
    {{"Q5_1", CLT_Q5_1, 9}, PLAIN},      {{"Q8_0", CLT_Q8_0, 7}, PLAIN},       {{"Q2_K", CLT_Q2_K, 10}, M_Q2_K},
    {{"Q2_K_S", CLT_Q2_K, 21}, M_Q2_K_S}, {{"Q3_K_S", CLT_Q3_K, 11}, PLAIN},   {{"Q3_K_M", CLT_Q3_K, 12}, M_Q3_K_M},
    {{"Q3_K_L", CLT_Q3_K, 13}, M_Q3_K_L}, {{"Q4_K_S", CLT_Q4_K, 14}, M_Q4_K_S}, {{"Q4_K_M", CLT_Q4_K, 15}, M_Q4_K_M},
    {{"Q5_K_S", CLT_Q5_K, 16}, PLAIN},   {{"Q5_K_M", CLT_Q5_K, 17}, M_Q5_K_M}, {{"Q6_K", CLT_Q6_K, 18}, PLAIN},
    {{"IQ4_NL", CLT_IQ4_NL, 25}, M_IQ4}, {{"IQ4_XS", CLT_IQ4_XS, 30}, M_IQ4},
    {{"Q3_K", CLT_Q3_K, 12}, M_Q3_K_M},  {{"Q4_K", CLT_Q4_K, 15}, M_Q4_K_M},   {{"Q5_K", CLT_Q5_K, 17}, M_Q5_K_M},
};
enum { N_RECIPES = sizeof recipes / sizeof *recipes };

/* ---- the rules of the mixes: the first that fits a tensor counts ---- */

typedef enum kind { OTHER, VALUE, KEY, ATTN_OUT, DOWN, EMBEDDING, OUTPUT } kind;
typedef enum when {
    ALWAYS,
    GROUPED,      /* at least 4 query heads share a key head: the value matrix is small and matters much */
    FIRST_2, FIRST_4, FIRST_8TH, FIRST_16TH,
    OUTER,        /* the first and the last eighth of the layers, and every third between */
    UNWEIGHTED_8TH, WEIGHTED_8TH /* FIRST_8TH, without and with known importance */
} when;

static const struct rule {
    mix rules;
    kind kind;
    when when;
    clt_type type;
} rules[] = {
    {M_Q4_0, DOWN, WEIGHTED_8TH, CLT_Q4_1},  {M_Q5_0, DOWN, WEIGHTED_8TH, CLT_Q5_1},
    {M_Q2_K, VALUE, GROUPED, CLT_Q4_K},      {M_Q2_K, VALUE, ALWAYS, CLT_Q3_K},
    {M_Q2_K, DOWN, ALWAYS, CLT_Q3_K},        {M_Q2_K, ATTN_OUT, ALWAYS, CLT_Q3_K},
    {M_Q2_K_S, VALUE, GROUPED, CLT_Q4_K},    {M_Q2_K_S, DOWN, FIRST_8TH, CLT_Q4_K},
    {M_Q3_K_M, VALUE, FIRST_2, CLT_Q5_K},    {M_Q3_K_M, VALUE, ALWAYS, CLT_Q4_K},
    {M_Q3_K_M, DOWN, FIRST_16TH, CLT_Q5_K},  {M_Q3_K_M, DOWN, ALWAYS, CLT_Q4_K},
    {M_Q3_K_M, ATTN_OUT, ALWAYS, CLT_Q4_K},  {M_Q3_K_L, VALUE, ALWAYS, CLT_Q5_K},
    {M_Q3_K_L, DOWN, ALWAYS, CLT_Q5_K},      {M_Q3_K_L, ATTN_OUT, ALWAYS, CLT_Q5_K},
    {M_Q4_K_S, VALUE, FIRST_4, CLT_Q5_K},    {M_Q4_K_S, DOWN, FIRST_8TH, CLT_Q5_K},
    {M_Q4_K_M, VALUE, OUTER, CLT_Q6_K},      {M_Q4_K_M, DOWN, OUTER, CLT_Q6_K},
    {M_Q5_K_M, VALUE, OUTER, CLT_Q6_K},      {M_Q5_K_M, DOWN, OUTER, CLT_Q6_K},
    {M_IQ4, VALUE, GROUPED, CLT_Q5_K},       {M_IQ4, DOWN, UNWEIGHTED_8TH, CLT_Q5_K},
};

/* With eight experts these three are next to nothing beside the experts. */
static const struct { kind kind; clt_type type; } eight_experts[] = {
    {VALUE, CLT_Q8_0}, {KEY, CLT_Q8_0}, {ATTN_OUT, CLT_Q5_K},
};

static bool eight_experts_raise_output(const clt_recipe *r) {
    return !strcmp(r->name, "Q2_K") || !strncmp(r->name, "Q3_K", 4) || !strncmp(r->name, "Q4_K", 4) ||
           !strncmp(r->name, "IQ4", 3);
}

/* ---- names ---- */

const clt_recipe *clt_recipe_find(const char *name) {
    for (size_t i = 0; i < N_RECIPES; i++)
        if (!strcasecmp(recipes[i].recipe.name, name)) return &recipes[i].recipe;
    return NULL;
}

const char *clt_recipe_names(void) {
    return "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q2_K_S Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ4_NL IQ4_XS "
           "F32 F16 BF16 auto:SIZE";
}

static bool has(const char *name, const char *part) { return strstr(name, part) != NULL; }

static bool ends(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && !strcmp(name + n - m, end);
}

int clt_layer_of(const char *name) {
    int layer;
    return sscanf(name, "blk.%d.", &layer) == 1 && layer >= 0 ? layer : -1;
}

bool clt_is_value_matrix(const char *name) { return has(name, "attn_v.weight") || has(name, "attn_qkv.weight"); }

static kind kind_of(const char *name) {
    if (!strcmp(name, "output.weight")) return OUTPUT;
    if (!strcmp(name, "token_embd.weight") || !strcmp(name, "per_layer_token_embd.weight")) return EMBEDDING;
    if (clt_is_value_matrix(name)) return VALUE;
    if (has(name, "attn_k.weight")) return KEY;
    if (has(name, "attn_output.weight")) return ATTN_OUT;
    if (has(name, "ffn_down")) return DOWN;
    return OTHER;
}

bool clt_recipe_applies(const char *name, int n_dims) {
    static const char *const kept[] = {"_norm.weight", "ffn_gate_inp.weight", "per_layer_model_proj", ".position_embd",
                                       ".patch_embd", ".rel_pos", ".patch_merger"};
    if (n_dims < 2 || !ends(name, "weight")) return false;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (has(name, kept[i])) return false;
    return true;
}

/* ---- choosing ---- */

clt_type clt_type_fitting(clt_type t, int64_t cols) {
    clt_type instead = t;
    if (cols % clt_type_get((uint32_t)t)->block_len == 0) return t;
    switch (t) {
    case CLT_Q2_K: case CLT_Q3_K: instead = CLT_Q4_0; break;
    case CLT_Q4_K: instead = CLT_Q5_0; break;
    case CLT_Q5_K: instead = CLT_Q5_1; break;
    case CLT_Q6_K: instead = CLT_Q8_0; break;
    case CLT_IQ4_XS: instead = CLT_IQ4_NL; break;
    default: break;
    }
    return cols % clt_type_get((uint32_t)instead)->block_len == 0 ? instead : CLT_F16;
}

static bool holds(when w, const clt_recipe_model *m, int index, int count) {
    int eighth = m->layers / 8;
    switch (w) {
    case ALWAYS: return true;
    case GROUPED: return m->query_groups >= 4;
    case FIRST_2: return index < 2;
    case FIRST_4: return index < 4;
    case FIRST_8TH: return index < eighth;
    case FIRST_16TH: return index < m->layers / 16;
    case OUTER: return index < count / 8 || index >= 7 * count / 8 || (index - count / 8) % 3 == 2;
    case UNWEIGHTED_8TH: return index < eighth && !m->has_importance;
    case WEIGHTED_8TH: return index < eighth && m->has_importance;
    }
    return false;
}

static clt_type mixed_type(const clt_recipe *r, const clt_recipe_model *m, kind k, int index, int count) {
    mix mine = recipes[0].rules;
    for (size_t i = 0; i < N_RECIPES; i++)
        if (&recipes[i].recipe == r) mine = recipes[i].rules;
    for (size_t i = 0; m->experts == 8 && i < sizeof eight_experts / sizeof *eight_experts; i++)
        if (eight_experts[i].kind == k && (k != ATTN_OUT || eight_experts_raise_output(r))) return eight_experts[i].type;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].rules == mine && rules[i].kind == k && holds(rules[i].when, m, index, count)) return rules[i].type;
    return r->base;
}

clt_type clt_recipe_type(const clt_recipe *r, const clt_recipe_model *m, const char *name, int64_t cols, int value_index) {
    kind k = kind_of(name);
    bool quantised = clt_type_get((uint32_t)r->base)->block_len > 1;
    clt_type t = r->base;
    if (!quantised) return t;
    if (k == OUTPUT || (k == EMBEDDING && m->tied)) {
        if (cols % clt_type_get((uint32_t)t)->block_len != 0) t = CLT_Q8_0;
        else if (t != CLT_Q8_0) t = CLT_Q6_K;
    } else if (k == VALUE) {
        t = mixed_type(r, m, k, value_index, m->value_matrices);
    } else {
        t = mixed_type(r, m, k, clt_layer_of(name), m->layers);
    }
    return clt_type_fitting(t, cols);
}
