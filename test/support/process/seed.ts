/**
 * The seed of every random choice in tests. It is the same in each run, so that a green change
 * stays green; `SEED=N npm test` chooses another, and every drill does.
 */
import fc from 'fast-check'

/** Printed with each failure. */
export const seed = Number(process.env.SEED ?? 20_261_123)

// Also for properties without a seed of their own: vitest loads this before each test file.
fc.configureGlobal({ seed })
