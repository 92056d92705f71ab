/* The search itself, for registers of FIT_WIDTH floats: included by one file for each CPU level.
 *
 * All types are one of two problems. *Scaled* types: y = d q with q a whole number of a range, or an entry of a table.
 * *Affine* types: y = d q - m, q >= 0. For given codes the best d (and m) is a least-squares solution; for given d (and m)
 * the best codes are the nearest ones. So the search tries a few dozen ways to lay the range over the block, solves for
 * each, keeps the best and lets both steps take turns. Types of 256 numbers then bring the scales of their sub-blocks to
 * whole numbers, a problem of the first kind again, and try the neighbours of each.
 *
 * A block is first divided by its largest magnitude, so that nothing overflows or vanishes. */
#ifndef FIT_WIDTH
#error "define FIT_WIDTH"
#endif
#include <math.h>
#include <string.h>
#include "kernels/fit.h"
#include "kernels/internal.h"

typedef float vf __attribute__((vector_size(4 * FIT_WIDTH)));
typedef int32_t vi __attribute__((vector_size(4 * FIT_WIDTH)));

/* What a block of a type is made of. */
typedef struct shape {
    int subs, len;             /* sub-blocks; numbers in each */
    float lo, hi;              /* codes, as the numbers they stand for */
    float scale_lo, scale_hi;  /* whole-number scales of the sub-blocks (subs > 1) */
    bool affine, free_min;     /* free_min: the minimum may have either sign */
    bool table;                /* codes are entries of clt_iq4_values */
} shape;

CLT_INLINE shape shape_of(clt_type t) {
    switch (t) {
    case CLT_Q4_0: return (shape){.subs = 1, .len = 32, .lo = -8, .hi = 7};
    case CLT_Q5_0: return (shape){.subs = 1, .len = 32, .lo = -16, .hi = 15};
    case CLT_Q8_0: return (shape){.subs = 1, .len = 32, .lo = -128, .hi = 127};
    case CLT_Q4_1: return (shape){.subs = 1, .len = 32, .hi = 15, .affine = true, .free_min = true};
    case CLT_Q5_1: return (shape){.subs = 1, .len = 32, .hi = 31, .affine = true, .free_min = true};
    case CLT_IQ4_NL: return (shape){.subs = 1, .len = 32, .lo = -127, .hi = 113, .table = true};
    case CLT_Q2_K: return (shape){.subs = 16, .len = 16, .hi = 3, .scale_hi = 15, .affine = true};
    case CLT_Q4_K: return (shape){.subs = 8, .len = 32, .hi = 15, .scale_hi = 63, .affine = true};
    case CLT_Q5_K: return (shape){.subs = 8, .len = 32, .hi = 31, .scale_hi = 63, .affine = true};
    case CLT_Q3_K: return (shape){.subs = 16, .len = 16, .lo = -4, .hi = 3, .scale_lo = -32, .scale_hi = 31};
    case CLT_Q6_K: return (shape){.subs = 16, .len = 16, .lo = -32, .hi = 31, .scale_lo = -128, .scale_hi = 127};
    case CLT_IQ4_XS:
        return (shape){.subs = 8, .len = 32, .lo = -127, .hi = 113, .scale_lo = -32, .scale_hi = 31, .table = true};
    case CLT_F32: case CLT_F16: case CLT_BF16: break;
    }
    return (shape){0};
}

/* ---- lanes ---- */

CLT_INLINE vf load(const float *p) { vf v; memcpy(&v, p, sizeof v); return v; }
CLT_INLINE void store(float *p, vf v) { memcpy(p, &v, sizeof v); }
CLT_INLINE vf all(float s) { return (vf){0} + s; }
CLT_INLINE vf pick(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }
CLT_INLINE vf smaller(vf a, vf b) { return pick(a < b, a, b); }
CLT_INLINE vf larger(vf a, vf b) { return pick(a > b, a, b); }
CLT_INLINE vf magnitude(vf a) { return (vf)((vi)a & 0x7fffffff); }
/* a / b, 0 where b is 0. */
CLT_INLINE vf ratio(vf a, vf b) { return pick(b != 0.0f, a / pick(b != 0.0f, b, all(1)), all(0)); }
/* To the nearest whole number, ties to even, for magnitudes below 2^22. */
CLT_INLINE vf nearest(vf v) { return v + 0x1.8p23f - 0x1.8p23f; }

/* The code for v as the number it stands for. */
CLT_INLINE vf code_for(const shape *s, vf v) {
    if (!s->table) return nearest(larger(smaller(v, all(s->hi)), all(s->lo)));
    vf code = all(clt_iq4_values[0]);
    CLT_UNROLL
    for (int i = 1; i < 16; i++) {
        float border = 0.5f * (float)(clt_iq4_values[i - 1] + clt_iq4_values[i]);
        code = pick(v > border, all(clt_iq4_values[i]), code);
    }
    return code;
}

/* Nearest half float of each lane, as float; magnitudes beyond the range become its ends. */
CLT_INLINE vf to_half(vf v, uint16_t *bits) {
    float f[FIT_WIDTH];
    memcpy(f, &v, sizeof f);
    for (int l = 0; l < FIT_WIDTH; l++) {
        f[l] = f[l] > 65504.0f ? 65504.0f : f[l] < -65504.0f ? -65504.0f : f[l];
        bits[l] = clt_f32_to_f16(f[l]);
        f[l] = clt_f16_to_f32(bits[l]);
    }
    memcpy(&v, f, sizeof f);
    return v;
}

/* Numbers of one sub-block, with the distance from one to the next. */
typedef struct part {
    const float *x, *w; /* [len][16] */
    int len;
} part;
CLT_INLINE vf at(const float *p, int i) { return load(p + i * CLT_FIT_LANES); }

/* ---- scaled: y = d q ---- */

/* The scale that lays the largest number on code c, as its inverse; then what it would win: (sum w x q)^2 / sum w q^2. */
CLT_INLINE vf win_of(const shape *s, const part *p, vf inverse, vf *d) {
    vf xq = all(0), qq = all(0);
    for (int i = 0; i < p->len; i++) {
        vf x = at(p->x, i), q = code_for(s, x * inverse), wq = at(p->w, i) * q;
        xq += wq * x;
        qq += wq * q;
    }
    *d = ratio(xq, qq);
    return *d * xq;
}

/* Codes that the largest number is tried on: so many steps within the far end of the range (lo), and with the other sign
 * within the near one (hi). Below 0 it is cut. Whole steps find the codes of numbers that were quantised before. */
static const float far_steps[] = {0.0f, -0.9f, -0.45f, 0.3f, 0.6f, 1.0f, 1.5f, 2.0f, 2.5f, 3.0f, 4.0f};
static const float near_steps[] = {0.0f, -0.45f, 0.3f, 0.6f, 1.0f, 1.5f, 2.0f, 3.0f};
/* By how much more a later attempt must win: less is the rounding of sums, and the earlier of equals shall stay. */
#define CLEARLY 1.000001f
enum { N_FAR = sizeof far_steps / sizeof *far_steps, N_NEAR = sizeof near_steps / sizeof *near_steps, POLISH = 3 };

/* One of these codes; 0: not worth an attempt. `step`: between neighbouring codes, on average. */
CLT_INLINE float code_tried(const shape *s, int k) {
    float step = s->table ? 16.0f : 1.0f;
    float end = k < N_FAR ? -s->lo : s->hi, within = (k < N_FAR ? far_steps[k] : near_steps[k - N_FAR]) * step;
    if (within > 0.45f * end || (s->table && k % 2)) return 0; /* codes of a table take long to find: half the attempts */
    return k < N_FAR ? within - end : end - within;
}

/* The best real scale of a part. */
CLT_INLINE vf fit_scale(const shape *s, const part *p) {
    vf extreme = all(0), best = all(0), best_d = all(0), d;
    for (int i = 0; i < p->len; i++) {
        vf x = at(p->x, i);
        extreme = pick(magnitude(x) > magnitude(extreme), x, extreme);
    }
    vf unit = ratio(all(1), extreme);
    for (int k = 0; k < N_FAR + N_NEAR; k++) {
        float c = code_tried(s, k);
        if (c == 0.0f) continue;
        vf win = win_of(s, p, unit * c, &d);
        vi better = win > best * CLEARLY;
        best = pick(better, win, best);
        best_d = pick(better, d, best_d);
    }
    for (int k = 0; k < POLISH; k++) {
        vf win = win_of(s, p, ratio(all(1), best_d), &d);
        vi better = win > best * CLEARLY;
        best = pick(better, win, best);
        best_d = pick(better, d, best_d);
    }
    return best_d;
}

/* sum w (x - d q)^2 with the nearest codes. */
CLT_INLINE vf loss_scaled(const shape *s, const part *p, vf d) {
    vf sum = all(0), inverse = ratio(all(1), d);
    for (int i = 0; i < p->len; i++) {
        vf x = at(p->x, i), e = x - d * code_for(s, x * inverse);
        sum += at(p->w, i) * e * e;
    }
    return sum;
}

/* ---- affine: y = d q - m ---- */

typedef struct line { vf d, m, win; } line; /* win: what of sum w x^2 it explains */

/* Nearest codes of d and m, then the best d and m of these codes. */
CLT_INLINE line solve_line(const shape *s, const part *p, vf inverse, vf m) {
    vf sw = all(0), sx = all(0), sq = all(0), sqq = all(0), sxq = all(0);
    for (int i = 0; i < p->len; i++) {
        vf x = at(p->x, i), w = at(p->w, i), q = code_for(s, (x + m) * inverse), wq = w * q;
        sw += w;
        sx += w * x;
        sq += wq;
        sqq += wq * q;
        sxq += wq * x;
    }
    vf det = sw * sqq - sq * sq;
    line r = {.d = ratio(sw * sxq - sx * sq, det), .m = ratio(sq * sxq - sqq * sx, det)};
    vi forced = det <= 0.0f;
    if (!s->free_min) forced |= r.m < 0.0f;
    r.d = pick(forced, ratio(sxq, sqq), r.d);
    r.m = pick(forced, all(0), r.m);
    r.win = r.d * sxq - r.m * sx;
    return r;
}

/* Codes that are all shifted by one, with the minimum to match, fit as well. The earlier of the two has the minimum that an
 * earlier quantisation of such numbers gave them. */
CLT_INLINE void keep_better(line *best, line other) {
    vi better = other.win > best->win * CLEARLY;
    better &= other.d > 0.0f;
    best->win = pick(better, other.win, best->win);
    best->d = pick(better, other.d, best->d);
    best->m = pick(better, other.m, best->m);
}

/* By how many steps the range reaches beyond (or, negative, stays within) the smallest and the largest number. */
static const float low_steps[] = {0.0f, 1.0f, -0.3f, -0.7f};
static const float high_steps[] = {0.0f, 1.0f, -0.25f, -0.5f, -0.9f};

CLT_INLINE line fit_line(const shape *s, const part *p) {
    vf lowest = at(p->x, 0), highest = lowest;
    for (int i = 1; i < p->len; i++) {
        lowest = smaller(lowest, at(p->x, i));
        highest = larger(highest, at(p->x, i));
    }
    if (!s->free_min) lowest = smaller(lowest, all(0));
    vf range = highest - lowest;
    line best = {all(0), all(0), all(0)};
    for (size_t i = 0; i < sizeof low_steps / sizeof *low_steps; i++)
        for (size_t k = 0; k < sizeof high_steps / sizeof *high_steps; k++) {
            /* step * (hi + cut) = range */
            vf step = range * (1 / (s->hi - low_steps[i] - high_steps[k]));
            keep_better(&best, solve_line(s, p, ratio(all(1), step), step * low_steps[i] - lowest));
        }
    for (int k = 0; k < POLISH; k++) keep_better(&best, solve_line(s, p, ratio(all(1), best.d), best.m));
    return best;
}

CLT_INLINE vf loss_affine(const shape *s, const part *p, vf d, vf m) {
    vf sum = all(0), inverse = ratio(all(1), d);
    for (int i = 0; i < p->len; i++) {
        vf x = at(p->x, i), e = x + m - d * code_for(s, (x + m) * inverse);
        sum += at(p->w, i) * e * e;
    }
    return sum;
}

/* ---- whole-number scales of sub-blocks ---- */

/* One block being fitted, FIT_WIDTH lanes of it; x is divided by `unit`. */
typedef struct block {
    shape s;
    shape levels;                              /* of the whole-number scales */
    float x[CLT_FIT_MAX_LEN * CLT_FIT_LANES];
    const float *w;
    vf unit;
    uint16_t d_bits[FIT_WIDTH], m_bits[FIT_WIDTH];
    vf d, m;                                   /* the half floats, divided by unit */
    vf scale[CLT_FIT_MAX_SUBS], min[CLT_FIT_MAX_SUBS]; /* whole numbers */
} block;

CLT_INLINE part part_of(const block *b, int sub) {
    int first = sub * b->s.len * CLT_FIT_LANES;
    return (part){b->x + first, b->w + first, b->s.len};
}

CLT_INLINE void set_d(block *b, vf d) { b->d = to_half(d * b->unit, b->d_bits) / b->unit; }
CLT_INLINE void set_m(block *b, vf m) { b->m = to_half(m * b->unit, b->m_bits) / b->unit; }

CLT_INLINE vf level_for(const block *b, vf v) { return code_for(&b->levels, v); }

/* The half float d for which d * (whole numbers) comes nearest to the wanted scales. */
CLT_INLINE vf fit_levels(const block *b, const vf *wanted, const vf *weight) {
    float x[CLT_FIT_MAX_SUBS * CLT_FIT_LANES], w[CLT_FIT_MAX_SUBS * CLT_FIT_LANES];
    for (int j = 0; j < b->s.subs; j++) {
        store(x + j * CLT_FIT_LANES, wanted[j]);
        store(w + j * CLT_FIT_LANES, weight[j]);
    }
    return fit_scale(&b->levels, &(part){x, w, b->s.subs});
}

/* How much a sub-block loses for each unit of (d - best d)^2. */
CLT_INLINE vf curvature_scaled(const shape *s, const part *p, vf d) {
    vf qq = all(0), inverse = ratio(all(1), d);
    for (int i = 0; i < p->len; i++) {
        vf q = code_for(s, at(p->x, i) * inverse);
        qq += at(p->w, i) * q * q;
    }
    return qq;
}

CLT_INLINE void choose_scales(block *b) {
    for (int j = 0; j < b->s.subs; j++) {
        part p = part_of(b, j);
        vf middle = b->scale[j], best = loss_scaled(&b->s, &p, b->d * middle);
        for (int step = -1; step <= 1; step += 2) {
            vf level = level_for(b, middle + (float)step), loss = loss_scaled(&b->s, &p, b->d * level);
            b->scale[j] = pick(loss < best, level, b->scale[j]);
            best = smaller(best, loss);
        }
    }
}

/* d once more, for the whole block at its present codes. */
CLT_INLINE vf resolve_scaled(const block *b) {
    vf xq = all(0), qq = all(0);
    for (int j = 0; j < b->s.subs; j++) {
        part p = part_of(b, j);
        vf inverse = ratio(all(1), b->d * b->scale[j]);
        for (int i = 0; i < p.len; i++) {
            vf x = at(p.x, i), q = b->scale[j] * code_for(&b->s, x * inverse), wq = at(p.w, i) * q;
            xq += wq * x;
            qq += wq * q;
        }
    }
    return ratio(xq, qq);
}

CLT_INLINE void fit_scaled(block *b) {
    vf wanted[CLT_FIT_MAX_SUBS], weight[CLT_FIT_MAX_SUBS];
    for (int j = 0; j < b->s.subs; j++) {
        part p = part_of(b, j);
        wanted[j] = fit_scale(&b->s, &p);
        if (b->s.subs > 1) weight[j] = curvature_scaled(&b->s, &p, wanted[j]);
    }
    if (b->s.subs == 1) {
        set_d(b, wanted[0]);
        b->scale[0] = all(1);
        return;
    }
    set_d(b, fit_levels(b, wanted, weight));
    for (int j = 0; j < b->s.subs; j++) b->scale[j] = level_for(b, wanted[j] * ratio(all(1), b->d));
    choose_scales(b);
    set_d(b, resolve_scaled(b));
    choose_scales(b);
}

/* The best minimum of a part for a given scale, starting from the codes that m gives. */
CLT_INLINE vf resolve_min(const shape *s, const part *p, vf d, vf m) {
    vf sw = all(0), rest = all(0), inverse = ratio(all(1), d);
    for (int i = 0; i < p->len; i++) {
        vf x = at(p->x, i), w = at(p->w, i);
        sw += w;
        rest += w * (d * code_for(s, (x + m) * inverse) - x);
    }
    return larger(ratio(rest, sw), all(0));
}

/* Curvatures in d and m of a part. */
CLT_INLINE void curvature_affine(const shape *s, const part *p, const line *at_line, vf *of_d, vf *of_m) {
    vf sw = all(0), sq = all(0), sqq = all(0), inverse = ratio(all(1), at_line->d);
    for (int i = 0; i < p->len; i++) {
        vf w = at(p->w, i), q = code_for(s, (at(p->x, i) + at_line->m) * inverse);
        sw += w;
        sq += w * q;
        sqq += w * q * q;
    }
    *of_d = sqq - ratio(sq * sq, sw);
    *of_m = sw;
}

/* The neighbours of a sub-block's scale, each with the minimum that suits it best; `wanted` becomes that minimum. */
CLT_INLINE void choose_scale_affine(block *b, int j, vf *wanted) {
    part p = part_of(b, j);
    vf middle = b->scale[j], start = *wanted, best = all(INFINITY);
    for (int step = -1; step <= 1; step++) {
        vf level = level_for(b, middle + (float)step), d = b->d * level, m = resolve_min(&b->s, &p, d, start);
        vf loss = loss_affine(&b->s, &p, d, m);
        vi better = loss < best;
        b->scale[j] = pick(better, level, b->scale[j]);
        *wanted = pick(better, m, *wanted);
        best = pick(better, loss, best);
    }
}

/* The neighbours of both whole numbers of a sub-block. */
CLT_INLINE void choose_pair(block *b, int j) {
    part p = part_of(b, j);
    vf scale = b->scale[j], min = b->min[j], best = loss_affine(&b->s, &p, b->d * scale, b->m * min);
    for (int k = 0; k < 9; k++) {
        if (k == 4) continue; /* both as they are */
        vf a = level_for(b, scale + (float)(k / 3 - 1)), c = level_for(b, min + (float)(k % 3 - 1));
        vf loss = loss_affine(&b->s, &p, b->d * a, b->m * c);
        vi better = loss < best;
        b->scale[j] = pick(better, a, b->scale[j]);
        b->min[j] = pick(better, c, b->min[j]);
        best = pick(better, loss, best);
    }
}

/* d and m once more, for the whole block at its present codes: y = d (scale q) - m min. */
CLT_INLINE void resolve_affine(block *b) {
    vf aa = all(0), ac = all(0), cc = all(0), xa = all(0), xc = all(0);
    for (int j = 0; j < b->s.subs; j++) {
        part p = part_of(b, j);
        vf m = b->m * b->min[j], inverse = ratio(all(1), b->d * b->scale[j]), c = b->min[j];
        for (int i = 0; i < p.len; i++) {
            vf x = at(p.x, i), w = at(p.w, i), a = b->scale[j] * code_for(&b->s, (x + m) * inverse);
            aa += w * a * a;
            ac += w * a * c;
            cc += w * c * c;
            xa += w * x * a;
            xc += w * x * c;
        }
    }
    vf det = aa * cc - ac * ac;
    vi sound = det > 1e-6f * aa * cc;
    vf d = pick(sound, ratio(xa * cc - xc * ac, det), b->d), m = pick(sound, ratio(xa * ac - xc * aa, det), b->m);
    sound = (d > 0.0f) & (m > 0.0f);
    set_d(b, pick(sound, d, b->d));
    set_m(b, pick(sound, m, b->m));
}

CLT_INLINE void fit_affine(block *b) {
    vf wanted_d[CLT_FIT_MAX_SUBS], wanted_m[CLT_FIT_MAX_SUBS], weight_d[CLT_FIT_MAX_SUBS], weight_m[CLT_FIT_MAX_SUBS];
    for (int j = 0; j < b->s.subs; j++) {
        part p = part_of(b, j);
        line best = fit_line(&b->s, &p);
        wanted_d[j] = best.d;
        wanted_m[j] = best.m;
        if (b->s.subs > 1) curvature_affine(&b->s, &p, &best, &weight_d[j], &weight_m[j]);
    }
    if (b->s.subs == 1) {
        set_d(b, wanted_d[0]);
        set_m(b, wanted_m[0]);
        b->scale[0] = b->min[0] = all(1);
        return;
    }
    set_d(b, fit_levels(b, wanted_d, weight_d));
    for (int j = 0; j < b->s.subs; j++) {
        b->scale[j] = level_for(b, wanted_d[j] * ratio(all(1), b->d));
        choose_scale_affine(b, j, &wanted_m[j]);
    }
    set_m(b, fit_levels(b, wanted_m, weight_m));
    for (int j = 0; j < b->s.subs; j++) {
        b->min[j] = level_for(b, wanted_m[j] * ratio(all(1), b->m));
        choose_pair(b, j);
    }
    resolve_affine(b);
    for (int j = 0; j < b->s.subs; j++) choose_pair(b, j);
}

/* ---- blocks ---- */

/* Index of a code in the table of IQ4 types; the code itself, from 0, elsewhere. */
CLT_INLINE vi code_index(const shape *s, vf code) {
    if (!s->table) return __builtin_convertvector(code - s->lo, vi);
    vi index = (vi){0};
    CLT_UNROLL
    for (int i = 0; i < 15; i++) index -= code > (float)clt_iq4_values[i];
    return index;
}

CLT_INLINE void put_codes(const block *b, int first_lane, clt_fit *out) {
    for (int j = 0; j < b->s.subs; j++) {
        part p = part_of(b, j);
        vf m = b->s.affine ? b->m * b->min[j] : all(0), inverse = ratio(all(1), b->d * b->scale[j]);
        for (int i = 0; i < p.len; i++) {
            vi index = code_index(&b->s, code_for(&b->s, (at(p.x, i) + m) * inverse));
            for (int l = 0; l < FIT_WIDTH; l++) out->code[j * p.len + i][first_lane + l] = (uint8_t)index[l];
        }
        for (int l = 0; l < FIT_WIDTH; l++) {
            out->scale[j][first_lane + l] = (int16_t)b->scale[j][l];
            out->min[j][first_lane + l] = b->s.affine ? (int16_t)b->min[j][l] : 0;
        }
    }
}

/* Of the types with a minimum, Q4_1 and Q5_1 add it, the others subtract it. */
CLT_INLINE void put_head(const block *b, int first_lane, clt_fit *out) {
    for (int l = 0; l < FIT_WIDTH; l++) {
        out->d[first_lane + l] = b->d_bits[l];
        out->m[first_lane + l] = !b->s.affine ? 0 : b->s.free_min ? b->m_bits[l] ^ 0x8000 : b->m_bits[l];
    }
}

CLT_INLINE void fit_blocks(clt_type t, const float *x, const float *w, clt_fit *out) {
    block b = {.s = shape_of(t)};
    b.levels = (shape){.lo = b.s.scale_lo, .hi = b.s.scale_hi};
    int n = b.s.subs * b.s.len;
    for (int first = 0; first < CLT_FIT_LANES; first += FIT_WIDTH) {
        vf largest = all(0);
        b.w = w + first;
        for (int i = 0; i < n; i++) largest = larger(magnitude(at(x + first, i)), largest);
        b.unit = pick(largest > 0.0f, largest, all(1));
        for (int i = 0; i < n; i++) store(b.x + i * CLT_FIT_LANES, at(x + first, i) / b.unit);
        if (b.s.affine) fit_affine(&b);
        else fit_scaled(&b);
        put_codes(&b, first, out);
        put_head(&b, first, out);
    }
}
