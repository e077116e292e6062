/**
 * Android's list of revoked certificates in a file of the operator's, as Google publishes it. A
 * replaced file is read again within a minute, whole or not at all: while it is broken the list
 * before it stays in force, and `/readyz` warns. Nothing is fetched.
 */
import { stat } from 'node:fs/promises'
import {
  statusListAgeMsMax,
  statusListPollMs,
  statusListReaderMiB,
  statusListReadMsMax,
} from '#shared/core/base/limits/attestation.ts'
import { openSerials, type RevokedSerials } from '#shared/core/installs/revoked-serials.ts'
import { askThread } from '#shared/io/process/ask-thread.ts'
import type { StopSteps } from '#shared/io/process/lifecycle.ts'
import type { Log } from '#shared/io/process/log.ts'
import { type Metrics, startAtZero } from '#shared/io/process/metrics.ts'
import { startPolling } from '#shared/io/process/poll.ts'
import { type StatusFault, type StatusReading, toVersion } from './status-worker.ts'

export type StatusFile = {
  /** The list in force; null without one. */
  revoked: () => RevokedSerials | null
  /** The same for threads, of `packSerials`. */
  packed: () => SharedArrayBuffer | null
  /** For `/readyz`: what is wrong with the file, or that it is old; null when nothing is. */
  warning: () => string | null
  close: () => Promise<void>
}

/** Where there is no file: nothing is known to be revoked. */
const noStatusFile: StatusFile = {
  revoked: () => null,
  packed: () => null,
  warning: () => null,
  close: async () => undefined,
}

/** Opens the file of the settings, until the process stops. */
export function startStatusFile(
  { ATTESTATION_STATUS_FILE: file }: { ATTESTATION_STATUS_FILE?: string | undefined },
  options: { lifecycle: StopSteps; log: Log; metrics: Metrics; wallMs: () => number },
): StatusFile {
  if (file === undefined) return noStatusFile
  const status = openStatusFile({ file, ...options })
  options.lifecycle.onStop('status list', status.close)
  return status
}

const faultTexts: Record<StatusFault, string> = {
  unreadable: 'cannot be read',
  too_large: 'is larger than 64 MiB',
  malformed: 'is not the list that Android publishes',
}

/**
 * Reads the file and follows it until it is closed.
 * @param options.wallMs the wall clock
 */
export function openStatusFile(options: {
  file: string
  log: Log
  metrics: Metrics
  wallMs: () => number
  /** Overrides the limit, for tests. */
  everyMs?: number
}): StatusFile {
  const { file, log, wallMs, everyMs = statusListPollMs } = options
  let packed: SharedArrayBuffer | null = null
  let revoked: RevokedSerials | null = null
  let modifiedMs: number | null = null
  let fault: StatusFault | null = null
  let seen = ''
  const ageMs = () => (modifiedMs === null ? null : Math.max(0, wallMs() - modifiedMs))
  const faults = countFaults(options.metrics, {
    ageMs,
    entries: () => revoked?.size ?? 0,
  })
  const setFault = (found: StatusFault) => {
    fault = found
    faults(found)
    log.warn({ fault: found }, 'the status list cannot be used; the one before it stays')
  }
  const look = async () => {
    const version = await stat(file).then(toVersion, () => null)
    if (version === null) {
      if (seen !== '' || fault === null) setFault('unreadable')
      seen = ''
      return
    }
    if (version === seen) return
    seen = version
    const reading = await readInThread(file)
    if ('fault' in reading) {
      // What is wrong with the content stays until the file changes; a read can be tried again.
      if (reading.fault === 'unreadable') seen = ''
      setFault(reading.fault)
      return
    }
    ;({ version: seen, modifiedMs, packed } = reading)
    revoked = openSerials(packed)
    fault = null
    log.info({ entries: revoked.size }, 'the status list was read')
  }
  const poller = startPolling(look, { log, everyMs, failure: 'the status list cannot be read' })
  return {
    revoked: () => revoked,
    packed: () => packed,
    warning: () => {
      if (fault !== null) return faultTexts[fault]
      const age = ageMs()
      return age !== null && age > statusListAgeMsMax ? 'is older than a week' : null
    },
    close: poller.stop,
  }
}

function countFaults(
  metrics: Metrics,
  { ageMs, entries }: { ageMs: () => number | null; entries: () => number },
): (fault: StatusFault) => void {
  metrics.gauge(
    'di_attestation_status_age_seconds',
    'Age of the status list of revoked certificates that is in force; none before the first',
    {
      collect() {
        const age = ageMs()
        if (age === null) this.remove()
        else this.set(age / 1_000)
      },
    },
  )
  metrics.gauge(
    'di_attestation_status_entries',
    'Revoked certificates on the status list that is in force',
    {
      collect() {
        this.set(entries())
      },
    },
  )
  const counter = metrics.counter(
    'di_attestation_status_faults_total',
    'Status lists that could not be used, by reason',
    ['reason'],
  )
  startAtZero(
    counter,
    Object.keys(faultTexts).map((reason) => ({ reason })),
  )
  return (reason) => counter.inc({ reason })
}

/** A thread that ends without an answer has not read the file. */
async function readInThread(file: string): Promise<StatusReading> {
  const reading = await askThread<StatusReading>(new URL('./status-worker.ts', import.meta.url), {
    name: 'status list',
    data: { file },
    limitMs: statusListReadMsMax,
    heapMiB: statusListReaderMiB,
  })
  return typeof reading === 'string' ? { fault: 'unreadable' } : reading
}
