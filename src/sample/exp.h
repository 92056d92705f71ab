/* A double-precision exp that gives the same bits on every machine: libm's may differ in the last place from one C library
 * to the next, and a sampled token hangs on it. */
#ifndef CLT_SAMPLE_EXP_H
#define CLT_SAMPLE_EXP_H

/* e^x for x <= 0 within 1 ulp or so; 0 below -700 and for NaN. */
double clt_sample_exp(double x);

#endif
