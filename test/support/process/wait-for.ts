// Waits until assertions pass, as vitest does, with enough time for a slow machine.
import { vi } from 'vitest'

/** Checks fifty times a second; throws the last failure when the time is over. */
export const waitFor = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { timeout: 120_000, interval: 20 })
