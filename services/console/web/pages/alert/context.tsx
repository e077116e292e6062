/** What is known around an alert: its device, its user, and whether a bad release explains it. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { api, ok } from '../../api/client.ts'
import type { components } from '../../api/schema.ts'
import { IdText } from '../../components/id.tsx'
import { Facts, Panel } from '../../components/page.tsx'
import { Time } from '../../components/time/time.tsx'
import { PhoneFact } from '../entities/phone-fact.tsx'
import { PhoneUsers, PhoneVerdicts } from '../entities/phone-verdicts.tsx'
import { toVerdictText } from '../entities/verdicts.ts'
import { SpikeNote } from '../signals/spike-note.tsx'
import type { Alert, AlertRecord } from './alert.ts'

/** Users that are named; how many more there are follows. */
const usersShown = 3

/** @param record undefined until it is read: what it says is left out meanwhile */
export function Context({ alert, record }: { alert: Alert; record: AlertRecord | undefined }) {
  const { tenant_id: tenant, entity } = alert
  const deviceId = entity.device.device_id
  const device = useQuery({
    queryKey: ['device', tenant, deviceId, 'context'],
    queryFn: () =>
      ok(
        api.GET('/admin/v1/tenants/{tenant_id}/devices/{device_id}', {
          params: {
            path: { tenant_id: tenant, device_id: deviceId },
            query: { sessions_limit: 1 },
          },
        }),
      ),
  })
  const known = device.data?.device
  const facts: [string, ReactNode][] = [
    ...(record === undefined ? [] : toVerdictFacts(alert, record)),
    ...(known === undefined
      ? []
      : ([
          ['Device first seen', <Time at={known.first_seen_at} exact key="first" />],
          ['Sessions', known.sessions_total.toLocaleString('en')],
          ['Users on it', <Users key="users" tenant={tenant} users={known.users_seen_on} />],
          ['Phone now', <PhoneFact key="phone" phone={known.phone} tenant={tenant} />],
          ...toPhoneFacts(tenant, known.phone),
          ['Attestation', toAttestation(known.install)],
        ] satisfies [string, ReactNode][])),
  ]
  return (
    <>
      <SpikeNote alerts={[alert]} tenant={tenant} />
      <Panel title="Context">
        {facts.length > 0 && <Facts facts={facts} />}
        {device.error !== null && (
          <p className="px-4 py-3 text-muted">The device cannot be read at the moment.</p>
        )}
      </Panel>
    </>
  )
}

type DevicePhone = components['schemas']['DevicePhone']
type Counts = AlertRecord['others']['device']

function toVerdictFacts({ tenant_id: tenant, entity }: Alert, { others }: AlertRecord) {
  const toFact = (name: string, counts: Counts, search: Record<string, string>) =>
    [
      name,
      <Link key={name} params={{ tenant }} search={search} to="/t/$tenant/alerts">
        {toVerdictText(counts)}
      </Link>,
    ] satisfies [string, ReactNode]
  const user = entity.user?.user_id
  return [
    toFact('Other alerts of the device', others.device, { device_id: entity.device.device_id }),
    ...(user === undefined || others.user === null
      ? []
      : [toFact('Other alerts of the user', others.user, { user_id: user })]),
  ]
}

/** Of the installs before this one, too: who reinstalls is a new device. */
function toPhoneFacts(
  tenant: string,
  phone: DevicePhone | null | undefined,
): [string, ReactNode][] {
  if (phone === null || phone === undefined || phone.installs < 2) return []
  const { phone_id: phoneId } = phone
  return [
    ['Alerts of the phone', <PhoneVerdicts key="alerts" phoneId={phoneId} tenant={tenant} />],
    ['Users of the phone', <PhoneUsers key="users" phoneId={phoneId} tenant={tenant} />],
  ]
}

type Install = { provider: string; verdict: string; level: string } | null

const toAttestation = (install: Install): string =>
  install === null
    ? 'not registered'
    : `${install.provider}, ${install.verdict}, key in ${install.level}`

function Users({ tenant, users }: { tenant: string; users: readonly string[] }) {
  if (users.length === 0) return <span className="text-muted">none was named</span>
  return (
    <span>
      {users.slice(0, usersShown).map((user, at) => (
        <span key={user}>
          {at > 0 && ', '}
          <Link params={{ tenant, userId: user }} to="/t/$tenant/users/$userId">
            <IdText most={32} value={user} />
          </Link>
        </span>
      ))}
      {users.length > usersShown && ` and ${(users.length - usersShown).toLocaleString('en')} more`}
    </span>
  )
}
