// Waiting until assertions hold, as vitest does, with the time that a slow machine needs.
import { vi } from 'vitest'

/** Looks every few milliseconds; what fails last is thrown when the time is over. */
export const waitFor = (check: () => Promise<void> | void): Promise<void> =>
  vi.waitFor(check, { timeout: 45_000, interval: 5 })
