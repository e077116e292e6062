/** What the server finds by an id, each with the address of its page. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { type AnswerOf, api, ok } from '../api/client.ts'

type Found = AnswerOf<'/admin/v1/search', 'get'>['data'][number]

/** Typing is faster than the search of every store. */
const settleMs = 200
const charactersMin = 3

const addresses: Record<Found['kind'], (id: string) => string | null> = {
  // Tenants are found by the list that the palette has already.
  tenant: () => null,
  alert: (id) => `alerts/${id}`,
  case: (id) => `cases/${id}`,
  delivery: (id) => `webhooks?delivery=${id}`,
  event: (id) => `events/${id}`,
  device: (id) => `devices/${encodeURIComponent(id)}`,
  user: (id) => `users/${encodeURIComponent(id)}`,
  phone: (id) => `phones/${id}`,
  session: (id) => `alerts?session_id=${encodeURIComponent(id)}`,
}

/** @returns none until the text has three characters and was not changed for a moment */
export function useFoundIds(
  text: string,
): { kind: string; tenant: string; id: string; to: string }[] {
  const [settled, setSettled] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), settleMs)
    return () => clearTimeout(timer)
  }, [text])
  const { data } = useQuery({
    queryKey: ['search', settled],
    queryFn: () => ok(api.GET('/admin/v1/search', { params: { query: { q: settled } } })),
    enabled: settled.length >= charactersMin,
  })
  if (settled !== text || settled.length < charactersMin) return []
  return (data?.data ?? []).flatMap(({ kind, tenant_id: tenant, id }) => {
    const address = addresses[kind](id)
    if (address === null) return []
    return [{ kind, tenant, id, to: `/t/${tenant}/${address}` }]
  })
}
