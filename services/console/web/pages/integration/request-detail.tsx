/** One submission of the request log: its answer in words, what the client sent, and its event. */
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ActionBadge, Badge } from '../../components/badge.tsx'
import { Id, IdText } from '../../components/id.tsx'
import { Facts } from '../../components/page.tsx'
import { Time } from '../../components/time/time.tsx'
import { useMay } from '../../shell/operator.ts'
import type { RequestRow } from './requests.ts'

const ours = 'The edge could not take it at that moment; the client may send the same bytes again.'

const reasons: Record<string, string> = {
  signature_missing: 'The header X-Service-Signature is missing.',
  signature_invalid:
    'The signature is not that of this body under the secret of the tenant, or the tenant is suspended.',
  shared_secret_off:
    'It is signed with the secret of the tenant, which is switched off for telemetry.',
  install_malformed: 'The install token has not the form of one.',
  install_epoch: 'The install token is of a root that the tenant no longer has.',
  install_mac: 'The install token was changed, or made by another service.',
  install_tenant: 'The install token is of another tenant.',
  install_device: 'The install token is of another device than the body.',
  install_expired: 'The install token has expired: the install must register again.',
  install_key: 'The body is not signed with the key of its install token.',
  install_batch: 'An install token came with a batch, which no install sends.',
  retired_secret: 'It is signed with the secret that the last rotation replaced.',
  rate: 'The tenant sends more requests than its rate.',
  byte_rate: 'The tenant sends more bytes than its rate.',
  share: 'Other tenants are sending too, and the tenant sends more than its share.',
  undecided: 'Too much of what the tenant has sent waits to be processed.',
  body: 'The signature is right, and the body is not valid.',
  challenge: 'The challenge has expired, or is not of this service.',
  registration_rate: 'More installs of the tenant register than its rate.',
  root_missing: 'The tenant has no install root yet. The console makes one.',
  tenant_unusable: 'The edge cannot read the entry of the tenant. See the alerts of the service.',
}

export function RequestDetail({ tenantId, row }: { tenantId: string; row: RequestRow }) {
  const mayCheck = useMay('engineer')
  const isUnsigned = row.status === 401
  const facts: [string, ReactNode][] = [
    ['Time', <Time at={row.at} exact key="at" />],
    [
      'Answer',
      <span key="answer">
        <Badge tone={row.status === 200 ? 'good' : 'bad'}>{row.status}</Badge>{' '}
        <span className="font-mono text-sm">{row.code}</span>
      </span>,
    ],
    ...(row.reason === null ? [] : ([['Why', reasons[row.reason] ?? ours]] as [string, string][])),
    ...(row.detail === null ? [] : ([['Faults', row.detail]] as [string, string][])),
    ['Sent', row.kind === 'registration' ? 'the registration of an install' : 'telemetry'],
    ['Request', <Id key="request" value={row.request_id} />],
    ['Edge', <Id key="edge" value={row.edge_id} />],
    ['Device', <ClientText key="device" row={row} value={row.device_id} />],
    ['SDK version', <ClientText key="sdk" row={row} value={row.sdk_version} />],
  ]
  return (
    <>
      <Facts facts={facts} />
      {!row.verified && (
        <p className="border-line border-t px-4 py-3 text-warn">
          Not verified: the sender chose the device and the SDK version, and may not be the tenant.
        </p>
      )}
      {row.event_id !== null && row.rasp_action !== null && (
        <p className="flex flex-wrap items-center gap-2 border-line border-t px-4 py-3">
          Device score {row.rasp_score} <ActionBadge action={row.rasp_action} />
          <Link
            params={{ tenant: tenantId, eventId: row.event_id }}
            to="/t/$tenant/events/$eventId"
          >
            Open the event
          </Link>
        </p>
      )}
      {isUnsigned && mayCheck && (
        <p className="border-line border-t px-4 py-3">
          <Link params={{ tenant: tenantId }} to="/manage/integrations/$tenant/signature">
            Find out why in the signature debugger
          </Link>
        </p>
      )}
    </>
  )
}

function ClientText({ row, value }: { row: RequestRow; value: string | null }) {
  if (value === null) return <span className="text-muted">not read</span>
  return (
    <span className="font-mono text-sm break-all">
      {!row.verified && <span className="text-warn">? </span>}
      <IdText value={value} />
    </span>
  )
}
