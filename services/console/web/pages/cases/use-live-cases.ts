/**
 * Changes of cases as the server announces them: rows that are loaded change in their place, and
 * cases that are not loaded are counted until the list is read again.
 */
import { type InfiniteData, useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { type AnnouncedCases, followAlerts } from '../alerts/live/alert-stream.ts'
import { type CasePage, caseQuery, casesKey, patchCases, showCase } from '../case/case.ts'

/** Rows that are read again after one announcement; of others only the state changes. */
const readMax = 20
/** Counts are of the whole queue: they are read again when it has been quiet for so long. */
const countsMs = 1_000

/**
 * @param live false keeps no connection
 * @returns `see` takes what is known now as seen: call it when the list is read again
 */
export function useLiveCases(
  tenant: string,
  live: boolean,
): { fresh: number; connected: boolean; see: () => void } {
  const client = useQueryClient()
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set())
  const [connected, setConnected] = useState(false)
  useEffect(() => {
    if (!live) return
    let timer: ReturnType<typeof setTimeout> | undefined
    const hearCases = ({ cases, more }: AnnouncedCases) => {
      const lists = client.getQueriesData<InfiniteData<CasePage>>({ queryKey: casesKey(tenant) })
      const loaded = new Set(
        lists.flatMap(([, list]) =>
          (list?.pages ?? []).flatMap(({ data }) => data.map(({ case_id: id }) => id)),
        ),
      )
      const states = new Map(cases.map(({ case_id: id, state }) => [id, state]))
      patchCases(client, (shown) => {
        const state = states.get(shown.case_id)
        return state === undefined || state === shown.state ? shown : { ...shown, state }
      })
      const known = cases.filter(({ case_id: id }) => loaded.has(id)).slice(0, readMax)
      for (const { case_id: id } of known) {
        client.fetchQuery(caseQuery(id)).then(
          (record) => showCase(client, record.case),
          // It is read when it is opened.
          () => undefined,
        )
      }
      for (const { case_id: id } of cases) {
        if (!known.some((one) => one.case_id === id)) {
          void client.invalidateQueries({ queryKey: ['case', id] })
        }
        void client.invalidateQueries({ queryKey: ['case-alerts', id] })
      }
      const others = cases.filter((one) => one.state === 'OPEN' && !loaded.has(one.case_id))
      if (others.length > 0) {
        setFresh((before) => new Set([...before, ...others.map(({ case_id: id }) => id)]))
      }
      // So many that the server does not name them all.
      if (more) void client.invalidateQueries({ queryKey: casesKey(tenant) })
      clearTimeout(timer)
      timer = setTimeout(() => {
        void client.invalidateQueries({ queryKey: ['case-counts', tenant] })
      }, countsMs)
    }
    const end = followAlerts(tenant, (state) => setConnected(state.connected), hearCases)
    return () => {
      clearTimeout(timer)
      end()
    }
  }, [client, tenant, live])
  return { fresh: fresh.size, connected, see: () => setFresh(new Set()) }
}
