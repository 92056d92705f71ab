/* Constants of exp, tanh and gelu, shared by every CPU level.
 *
 * exp(x) = 2^n * exp(r) with n = rne(x / ln 2), r = x - n ln 2, |r| <= ln(2)/2, and exp(r) = 1 + (r + r^2 q(r)). q is the
 * polynomial of degree 4 with the least relative error in exp (Remez; coefficients rounded to float): 3.7e-9, 0.06 ulp. */
#ifndef CLT_KERNELS_MATH_COEFFS_H
#define CLT_KERNELS_MATH_COEFFS_H

#define CLT_LOG2E 0x1.715476p+0f
#define CLT_LN2_HI 0x1.62e430p-1f
#define CLT_LN2_LO -0x1.05c610p-29f
#define CLT_EXP_Q0 0x1.fffffcp-2f
#define CLT_EXP_Q1 0x1.555492p-3f
#define CLT_EXP_Q2 0x1.5558f2p-5f
#define CLT_EXP_Q3 0x1.123a20p-7f
#define CLT_EXP_Q4 0x1.6a23d0p-10f
#define CLT_ROUND_MAGIC 0x1.8p23f  /* x + this - this = x rounded to an integer (ties to even), |x| < 2^22 */
#define CLT_EXP_MIN -87.33654f     /* below: the result would not be a normal float, and is 0 */
#define CLT_TANH_MAX 10.0f         /* tanh is 1 in float from 9.02 on */
#define CLT_GELU_MIN -20.0f        /* gelu is -0 in float well above; keeps -inf * 0 out of the formula */
#define CLT_GELU_C1 0x1.988454p+0f /* 2 sqrt(2/pi) */
#define CLT_GELU_C3 0x1.2444f2p-4f /* 2 sqrt(2/pi) * 0.044715 */

#endif
