/* Recipes: which type each tensor of a file gets. The names, mixes and file types are llama.cpp's, so that a name means the
 * same size in both programs. */
#ifndef CLT_CONVERT_RECIPE_H
#define CLT_CONVERT_RECIPE_H
#include "convert/convert.h"

typedef struct clt_recipe {
    const char *name;   /* "Q4_K_M" */
    clt_type base;      /* of most matrices */
    uint32_t file_type; /* general.file_type */
} clt_recipe;

/* NULL if there is none of that name (case does not matter). */
const clt_recipe *clt_recipe_find(const char *name);
/* "Q4_0, Q4_1, …": for messages. */
const char *clt_recipe_names(void);

/* What a recipe looks at besides the tensor. */
typedef struct clt_recipe_model {
    int layers, experts;
    int query_groups;     /* query heads per key head of the first layer */
    bool tied;            /* the embedding is the output matrix, too */
    bool has_importance;
    int value_matrices;   /* attention value matrices in the file */
} clt_recipe_model;

/* Whether any recipe changes the type of this tensor: norms, routers, position tables and vectors stay as they are. */
bool clt_recipe_applies(const char *name, int n_dims);
/* The type of a tensor that recipes apply to; value_index: how many value matrices of lower layers the file has. Includes
 * the step down to types whose blocks fit the row length. */
clt_type clt_recipe_type(const clt_recipe *r, const clt_recipe_model *m, const char *name, int64_t cols, int value_index);
/* t, or the type that takes its place where rows are no whole number of blocks. */
clt_type clt_type_fitting(clt_type t, int64_t cols);
/* "blk.7.…" -> 7; -1 for tensors outside of layers. */
int clt_layer_of(const char *name);
bool clt_is_value_matrix(const char *name);

#endif
