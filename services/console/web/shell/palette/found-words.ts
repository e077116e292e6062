/** Flags, actions and signals by their names: each leads to what has it. */
import { useQuery } from '@tanstack/react-query'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { flags } from '#shared/core/signals/flags.ts'
import { api, ok } from '../../api/client.ts'
import { useTenant } from '../../api/tenants.ts'
import type { Entry } from './entry.ts'

const charactersMin = 2
const shownMax = 10

/** @returns none until the text has two characters, or without a tenant */
export function useFoundWords(text: string): Entry[] {
  const tenant = useTenant()
  const isAsked = tenant !== null && text.length >= charactersMin
  const signals = useQuery({
    queryKey: ['signals', tenant],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/signals', {
          params: { path: { tenant_id: tenant! } },
        }),
      ),
    enabled: isAsked,
  })
  if (!isAsked) return []
  const isNamed = (...names: string[]) =>
    names.some((name) => name.toLowerCase().includes(text.toLowerCase()))
  const ofActions = ['ALLOW', 'REVIEW', 'BLOCK'].filter((action) => isNamed(action))
  const ofFlags = Object.entries(flags).filter(([code, { name }]) => isNamed(code, name))
  const ofSignals = (signals.data?.categories ?? [])
    .flatMap((category) => category.signals)
    .filter(({ signal }) => isNamed(signal))
  const at = (query: string) => `/t/${tenant}/events?${query}`
  return [
    ...ofActions.map(
      (action): Entry => ({
        key: `action ${action}`,
        kind: 'Events by action',
        text: action,
        icon: 'events',
        to: at(`action=${action}`),
      }),
    ),
    ...ofFlags.map(
      ([code, { name }]): Entry => ({
        key: `flag ${code}`,
        kind: 'Events by flag',
        text: name,
        more: code,
        icon: 'events',
        to: at(`flag=${code}`),
      }),
    ),
    ...ofSignals.map(
      ({ signal }): Entry => ({
        key: `signal ${signal}`,
        kind: 'Events by signal',
        text: toVisible(signal),
        icon: 'signals',
        to: at(`signal=${encodeURIComponent(signal)}`),
      }),
    ),
  ].slice(0, shownMax)
}
