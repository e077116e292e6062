/**
 * Forgets what was written and read of installs, once an erasure has ended: it may be gone, and the
 * next event of an install that goes on writes it again. Erasures are rare, so all is forgotten.
 */
import { erasuresCheckMs } from '#shared/core/base/limits/entities.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Poller, startPolling } from '#shared/io/process/poll.ts'

type ForgetOptions = {
  /** When an erasure last ended; null when none did. */
  readLastErasure: () => Promise<string | null>
  forget: () => void
  log: Log
}

/** Forgets once for each end that is found. */
function createErasureCheck({ readLastErasure, forget }: Omit<ForgetOptions, 'log'>) {
  /** Undefined before the first look: nothing older was written by this process. */
  let known: string | null | undefined
  return async (): Promise<void> => {
    const last = await readLastErasure()
    if (known !== undefined && last !== known) forget()
    known = last
  }
}

/** Starts to check, until it is stopped. */
export function startErasureCheck(options: ForgetOptions): Poller {
  return startPolling(createErasureCheck(options), {
    log: options.log,
    everyMs: erasuresCheckMs,
    failure: 'ended erasures cannot be read',
  })
}
