/**
 * What the server announces of a tenant's alerts and cases, over one connection a browser: over HTTP/1.1 it
 * opens six to a server, and a stream holds one for as long as it lasts. The tab that has the lock
 * holds the stream and tells the others. A tab that is hidden gives the lock away.
 */
import { streamSilenceMs } from '#shared/core/base/limits/alerts.ts'
import type { CaseState } from '#shared/core/cases/case.ts'
import { prefix } from '../../../api/client.ts'

/** `lastSeq` is null until the server has said it. */
export type StreamState = { connected: boolean; lastSeq: number | null }

/** Cases that have changed; with `more` others have as well. */
export type AnnouncedCases = {
  cases: { case_id: string; state: CaseState }[]
  more: boolean
}

/** After a refusal the browser does not connect again by itself. */
const reconnectMs = 5_000
/** A tab that has just begun to listen asks for the state with this. */
const question = 'state?'

/**
 * Calls `hear` at each change, in every tab that is shown.
 * @param hearCases gets the cases that have changed
 * @returns ends it
 */
export function followAlerts(
  tenant: string,
  hear: (state: StreamState) => void,
  hearCases: (changed: AnnouncedCases) => void = () => undefined,
): () => void {
  const name = `di-alerts ${prefix}/${tenant}`
  const channel = new BroadcastChannel(name)
  /** Of the tab that holds the stream. */
  let own: StreamState | null = null
  let turn: AbortController | null = null
  channel.onmessage = ({ data }: MessageEvent<StreamState | AnnouncedCases | typeof question>) => {
    if (data === question) {
      if (own !== null) channel.postMessage(own)
    } else if ('cases' in data) hearCases(data)
    else hear(data)
  }
  const tell = (state: StreamState) => {
    own = state
    hear(state)
    channel.postMessage(state)
  }
  const lead = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      own = { connected: false, lastSeq: null }
      const close = openStream(
        tenant,
        (change) => tell({ ...own!, ...change }),
        (changed) => {
          hearCases(changed)
          channel.postMessage(changed)
        },
      )
      const end = () => {
        close()
        own = null
        resolve()
      }
      if (signal.aborted) end()
      else signal.addEventListener('abort', end, { once: true })
    })
  const follow = () => {
    const isShown = document.visibilityState === 'visible'
    if (isShown === (turn !== null)) return
    turn?.abort()
    turn = null
    if (!isShown) return
    turn = new AbortController()
    const { signal } = turn
    channel.postMessage(question)
    // Refused when it is ended while it waits for the lock.
    navigator.locks.request(name, { signal }, () => lead(signal)).catch(() => undefined)
  }
  document.addEventListener('visibilitychange', follow)
  follow()
  return () => {
    document.removeEventListener('visibilitychange', follow)
    turn?.abort()
    channel.close()
  }
}

/** @returns closes it */
function openStream(
  tenant: string,
  tell: (change: Partial<StreamState>) => void,
  tellCases: (changed: AnnouncedCases) => void,
): () => void {
  let source: EventSource
  let timer: ReturnType<typeof setTimeout> | undefined
  let watchdog: ReturnType<typeof setTimeout> | undefined
  const watch = () => {
    clearTimeout(watchdog)
    watchdog = setTimeout(() => {
      // The process hangs, or something between drops what it sends: no error would come.
      tell({ connected: false })
      source.close()
      connect()
    }, streamSilenceMs)
  }
  const hear = ({ data }: MessageEvent<string>) => {
    const { last_seq: lastSeq } = JSON.parse(data) as { last_seq: number }
    watch()
    tell({ connected: true, lastSeq })
  }
  const connect = () => {
    source = new EventSource(`${prefix}/admin/v1/tenants/${tenant}/alerts/stream`)
    for (const name of ['ready', 'alerts', 'ping']) source.addEventListener(name, hear)
    source.addEventListener('cases', ({ data }: MessageEvent<string>) => {
      tellCases(JSON.parse(data) as AnnouncedCases)
    })
    source.addEventListener('error', () => {
      tell({ connected: false })
      if (source.readyState === EventSource.CLOSED) {
        clearTimeout(watchdog)
        timer = setTimeout(connect, reconnectMs)
      }
    })
    watch()
  }
  connect()
  return () => {
    clearTimeout(timer)
    clearTimeout(watchdog)
    source.close()
  }
}
