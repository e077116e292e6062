/**
 * What every random choice of a test follows from. It is the same in each run, so that a change
 * that is green once stays green; `SEED=N npm test` draws others, and every drill does.
 */
import fc from 'fast-check'

/** Printed with what fails. */
export const seed = Number(process.env.SEED ?? 20_261_123)

// Also where a property names none itself: vitest loads this before each file of tests.
fc.configureGlobal({ seed })
