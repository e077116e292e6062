/** What a case is about and what is known around it, each with a link to it. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import type { Disposition } from '#shared/core/alerts/dispositions.ts'
import { api, ok } from '../../api/client.ts'
import { IdText } from '../../components/id.tsx'
import { Facts } from '../../components/page.tsx'
import { Skeleton } from '../../components/states.tsx'
import { Time } from '../../components/time/time.tsx'
import { counted } from '../../components/words.ts'
import type { Alert } from '../alert/alert.ts'
import { dispositionText } from '../alert/disposition.tsx'
import { By } from '../alert/history.tsx'
import { ConnectionFact } from '../entities/connection.tsx'
import { PhoneFact } from '../entities/phone-fact.tsx'
import { PhoneVerdicts } from '../entities/phone-verdicts.tsx'
import type { Case, CaseRecord } from './case.ts'
import { toFlagNames, toMoneyText } from './case-words.ts'

/** Devices and users that are named; the rest is a number. */
const namedMax = 5

export function CaseFacts({ record, worst }: { record: CaseRecord; worst: Alert }) {
  const { case: shown, devices, users } = record
  const tenant = shown.tenant_id
  const deviceId = worst.entity.device.device_id
  const { data: device, isError } = useQuery({
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
    // Without the stored history the case can be judged all the same.
    retry: false,
  })
  const known = device?.device
  const notKnown = isError ? (
    <span className="text-muted">cannot be read now</span>
  ) : (
    <Skeleton className="my-1 w-40" />
  )
  const money = toMoneyText(shown.money)
  const { platform, sdk_version: sdk, app_version: app, device_model: model } = worst
  const facts: [string, ReactNode][] = [
    ['Flags', toFlagNames(shown.flags)],
    ['Assignee', shown.assignee ?? <span className="text-muted">unassigned</span>],
    ...(shown.judged_by === null
      ? []
      : [
          [
            'Last judged',
            <By at={shown.judged_at ?? shown.latest_alert_at} key="judged" who={shown.judged_by} />,
          ] satisfies [string, ReactNode],
        ]),
    ...(money === '' ? [] : [['Lost', money] satisfies [string, ReactNode]]),
    ['Verdicts so far', <Verdicts key="verdicts" shown={shown} worst={worst} />],
    [
      'Users',
      <Names key="users" names={users}>
        {(userId) => (
          <Link params={{ tenant, userId }} to="/t/$tenant/users/$userId">
            <IdText value={userId} />
          </Link>
        )}
      </Names>,
    ],
    [
      'Devices',
      <Names key="devices" names={devices}>
        {(id) => (
          <Link params={{ tenant, deviceId: id }} to="/t/$tenant/devices/$deviceId">
            <IdText value={id} />
          </Link>
        )}
      </Names>,
    ],
    [
      'Client',
      [platform, model, app && `app ${app}`, sdk && `SDK ${sdk}`].filter(Boolean).join(', '),
    ],
    ['First seen', known ? <Time at={known.first_seen_at} exact key="first" /> : notKnown],
    ['Phone', known ? <PhoneFact key="phone" phone={known.phone} tenant={tenant} /> : notKnown],
    ['Attestation', known ? toInstallText(known.install) : notKnown],
    ['Connection', <ConnectionFact connection={worst.connection} key="from" tenant={tenant} />],
  ]
  return <Facts facts={facts} />
}

const toInstallText = (
  install: { provider: string; verdict: string; level: string } | null,
): string =>
  install === null ? 'none' : `${install.provider}, ${install.verdict}, key in ${install.level}`

function Names({
  names,
  children,
}: {
  names: readonly string[]
  children: (id: string) => ReactNode
}) {
  if (names.length === 0) return <span className="text-muted">none named</span>
  return (
    <span className="flex flex-wrap gap-x-4 gap-y-1">
      {names.slice(0, namedMax).map((id) => (
        <span className="min-w-0 break-all" key={id}>
          {children(id)}
        </span>
      ))}
      {names.length > namedMax && (
        <span className="text-muted">and {counted(names.length - namedMax, 'other')}</span>
      )}
    </span>
  )
}

/** Verdicts that count as known: what the entity's alerts were found to be. */
const verdicts: readonly Disposition[] = ['CONFIRMED', 'FALSE_POSITIVE', 'REVIEWED']

function Verdicts({ shown, worst }: { shown: Case; worst: Alert }) {
  const { tenant_id: tenant, subject } = shown
  const isOfPhone = subject.kind === 'phone'
  const filter =
    subject.kind === 'user' ? { user_id: subject.id } : { device_id: worst.entity.device.device_id }
  const counts = useQuery({
    queryKey: ['case-alerts', shown.case_id, 'verdicts', filter],
    queryFn: () =>
      Promise.all(
        verdicts.map(async (disposition) => {
          const query = { ...filter, disposition, limit: 1 }
          const { total } = await ok(
            api.GET('/admin/v1/tenants/{tenant_id}/alerts', {
              params: { path: { tenant_id: tenant }, query },
            }),
          )
          return { disposition, total }
        }),
      ),
    enabled: !isOfPhone,
  })
  // Of all installs of the phone: the one with the worst alert may be the newest.
  if (isOfPhone) return <PhoneVerdicts phoneId={subject.id} tenant={tenant} />
  const found = counts.data?.filter(({ total }) => total > 0)
  if (found === undefined) return <Skeleton className="my-1 w-40" />
  if (found.length === 0) return <span className="text-muted">none</span>
  return (
    <span className="flex flex-wrap gap-x-4 gap-y-1">
      {found.map(({ disposition, total }) => (
        <Link
          key={disposition}
          params={{ tenant }}
          search={{ ...filter, disposition }}
          to="/t/$tenant/alerts"
        >
          {total.toLocaleString('en')} {dispositionText(disposition).toLowerCase()}
        </Link>
      ))}
    </span>
  )
}
