/**
 * How far the fleet of a tenant attests: look at it before the shared secret is switched off, since
 * events without an install key are refused then.
 */
import type { ReactNode } from 'react'
import { attestationReasons } from '#shared/core/attestation/reasons.ts'
import { toVisible } from '#shared/core/base/visible-text.ts'
import { Badge } from '../../../components/badge.tsx'
import { Id } from '../../../components/id.tsx'
import { Panel } from '../../../components/page.tsx'
import { Empty, Loaded, SkeletonRows } from '../../../components/states.tsx'
import { type Column, Table } from '../../../components/table.tsx'
import { Time } from '../../../components/time/time.tsx'
import { counted } from '../../../components/words.ts'
import { type Coverage, toShare, useCoverage } from './coverage.ts'

type Version = Coverage['versions'][number]
type Reason = Coverage['reasons'][number]
type SharedKey = Coverage['shared_keys'][number]

const share = (
  id: 'install_key' | 'verified' | 'rejected' | 'missing',
  head: string,
): Column<Version> => ({
  id,
  head,
  cell: (version) => (
    <span title={counted(version[id], 'event')}>{toShare(version[id], version.events)}</span>
  ),
  numeric: true,
  width: '7.5rem',
})

const versionColumns: Column<Version>[] = [
  {
    id: 'version',
    head: 'Version',
    cell: ({ platform, sdk_version: version }) => (
      <bdi>{toVisible(`${platform || 'no platform'} ${version || 'no version'}`)}</bdi>
    ),
  },
  share('install_key', 'By install key'),
  {
    id: 'events',
    head: 'Events',
    cell: ({ events }) => events.toLocaleString('en'),
    numeric: true,
    width: '7rem',
  },
  share('verified', 'Verified'),
  share('rejected', 'Rejected'),
  share('missing', 'No token'),
]

const reasonColumns: Column<Reason>[] = [
  {
    id: 'reason',
    head: 'Reason',
    cell: ({ reason }) => (
      <span className="font-mono text-sm" translate="no">
        {reason}
      </span>
    ),
    width: '14rem',
  },
  {
    id: 'meaning',
    head: 'What it means',
    cell: ({ reason }) => {
      const known = attestationReasons[reason as keyof typeof attestationReasons]
      if (known === undefined) return '–'
      return <span title={`${known.meaning} ${known.advice}`}>{known.meaning}</span>
    },
  },
  {
    id: 'registrations',
    head: 'Registrations',
    cell: ({ registrations }) => registrations.toLocaleString('en'),
    numeric: true,
    width: '8rem',
  },
  {
    id: 'devices',
    head: 'Devices',
    cell: ({ devices }) => devices.toLocaleString('en'),
    numeric: true,
    width: '6rem',
  },
  { id: 'last', head: 'Last one', cell: ({ last_at: at }) => <Time at={at} />, width: '7rem' },
]

const kinds: Record<SharedKey['kind'], string> = {
  key: 'a key of one phone',
  remote_issuer: 'a certificate of one phone',
  issuer: 'a certificate of a batch',
}

const keyColumns: Column<SharedKey>[] = [
  { id: 'id', head: 'Key or certificate', cell: ({ id }) => <Id most={22} value={id} /> },
  { id: 'kind', head: 'Made as', cell: ({ kind }) => kinds[kind], width: '13rem' },
  {
    id: 'count',
    head: 'Ever on',
    cell: ({ kind, count }) => counted(count, kind === 'issuer' ? 'model' : 'device'),
    width: '8rem',
  },
  {
    id: 'devices',
    head: 'Devices',
    cell: ({ devices }) => devices.toLocaleString('en'),
    numeric: true,
    width: '7rem',
  },
  { id: 'last', head: 'Last one', cell: ({ last_at: at }) => <Time at={at} />, width: '7rem' },
]

export function CoveragePanel({ tenantId }: { tenantId: string }) {
  const coverage = useCoverage(tenantId)
  return (
    <Panel title="Attestation coverage, last 7 days">
      <Loaded query={coverage} skeleton={<SkeletonRows rows={3} />}>
        {(found) =>
          found.totals.events === 0 ? (
            <Empty title="No event in the last 7 days">
              <p>
                Send one with a program below. Once apps send, this shows which SDK versions sign
                with install keys, and why others do not.
              </p>
            </Empty>
          ) : (
            <Covered found={found} />
          )
        }
      </Loaded>
    </Panel>
  )
}

function Covered({ found }: { found: Coverage }) {
  const { versions, reasons, shared_keys: keys, version_count: all } = found
  return (
    <>
      <Summary totals={found.totals} />
      <Table
        columns={versionColumns}
        heightClass="max-h-80"
        label="Attestation by SDK version"
        minWidth="46rem"
        rowKey={({ platform, sdk_version: version }) => `${platform} ${version}`}
        rows={versions}
      />
      {all > versions.length && (
        <p className="px-4 py-2 text-muted text-sm">
          And {counted(all - versions.length, 'version')} with fewer events.
        </p>
      )}
      <Part title="Why it fails">
        {reasons.length === 0 ? (
          <p className="px-4 pb-3 text-muted">No registration was rejected.</p>
        ) : (
          <Table
            columns={reasonColumns}
            heightClass="max-h-72"
            label="Reasons of rejected registrations"
            minWidth="52rem"
            rowKey={({ provider, reason }) => `${provider} ${reason}`}
            rows={reasons}
          />
        )}
      </Part>
      <Part title="Shared keys">
        {keys.length === 0 ? (
          <p className="px-4 pb-3 text-muted">No key or certificate is on more than it is for.</p>
        ) : (
          <>
            <p className="px-4 pb-3 text-muted">
              Leaked or copied: each verifies, and is on more phones or models than it was made for.
            </p>
            <Table
              columns={keyColumns}
              heightClass="max-h-72"
              label="Shared keys"
              minWidth="46rem"
              rowKey={({ kind, id }) => `${kind} ${id}`}
              rows={keys}
            />
          </>
        )}
      </Part>
    </>
  )
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section>
      <h3 className="border-line border-t px-4 py-2 font-medium">{title}</h3>
      {children}
    </section>
  )
}

function Summary({ totals }: { totals: Coverage['totals'] }) {
  const { events, install_key: byKey } = totals
  const isAll = byKey === events
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-3">
      <Badge tone={isAll ? 'good' : 'neutral'}>{toShare(byKey, events)} by install key</Badge>
      <p className="text-muted">
        {isAll
          ? 'Every event was signed with an install key: the shared secret can be switched off.'
          : `${counted(events - byKey, 'event')} of ${events.toLocaleString('en')} would be refused without the shared secret.`}
        {byKey === 0 &&
          ' Let the app register its install: the client package and the examples do.'}
      </p>
    </div>
  )
}
