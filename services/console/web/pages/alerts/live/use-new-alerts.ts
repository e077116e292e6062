/** How many alerts of a tenant are new since the list was read, as the server announces them. */
import { useEffect, useState } from 'react'
import { prefix } from '../../../api/client.ts'

/** After a refusal the browser does not connect again by itself. */
const reconnectMs = 5_000

type Seqs = { seen: number; last: number }

/**
 * @param live false keeps no connection
 * @returns `see` takes what is known now as seen: call it when the list is read again
 */
export function useNewAlerts(
  tenant: string,
  live: boolean,
): { count: number; connected: boolean; see: () => void } {
  const [seqs, setSeqs] = useState<Seqs | null>(null)
  const [connected, setConnected] = useState(false)
  useEffect(() => {
    if (!live) return
    let source: EventSource
    let timer: ReturnType<typeof setTimeout> | undefined
    const hear = ({ data }: MessageEvent<string>) => {
      const { last_seq: last } = JSON.parse(data) as { last_seq: number }
      setConnected(true)
      // A lost connection resumes: what was raised meanwhile is new as well.
      setSeqs((before) => ({ seen: before?.seen ?? last, last: Math.max(before?.last ?? 0, last) }))
    }
    const connect = () => {
      source = new EventSource(`${prefix}/admin/v1/tenants/${tenant}/alerts/stream`)
      source.addEventListener('ready', hear)
      source.addEventListener('alerts', hear)
      source.addEventListener('error', () => {
        setConnected(false)
        if (source.readyState === EventSource.CLOSED) timer = setTimeout(connect, reconnectMs)
      })
    }
    connect()
    return () => {
      clearTimeout(timer)
      source.close()
    }
  }, [tenant, live])
  return {
    count: seqs === null ? 0 : seqs.last - seqs.seen,
    connected,
    see: () => setSeqs((before) => before && { ...before, seen: before.last }),
  }
}
