// The internals of a console for tests: a migrated database, NATS with its bucket, edges with real
// leases, and access to every step of a rotation.
import { createSecretKey, randomBytes, randomUUID } from 'node:crypto'
import { attestationRoots } from '#shared/core/attestation/roots.ts'
import { Problem } from '#shared/core/http/problem.ts'
import { signBody, verifySignature } from '#shared/core/telemetry/signature.ts'
import { createEventCountStore } from '#shared/io/analytics/event-count-store.ts'
import { createOverviewStore } from '#shared/io/analytics/overview-store.ts'
import { createClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { publishTenantHint } from '#shared/io/deliveries/publish-hints.ts'
import { createHistoryStore } from '#shared/io/devices/history-store.ts'
import { createLinkStore } from '#shared/io/devices/link-store.ts'
import { createNetworkStore } from '#shared/io/devices/network-store.ts'
import { createSignalHistoryStore } from '#shared/io/devices/signal-history-store.ts'
import { createTimelineEvents } from '#shared/io/devices/timeline-events-store.ts'
import { createUserStore } from '#shared/io/devices/user-store.ts'
import { createPhoneCorrections } from '#shared/io/identity/phone-corrections.ts'
import { createPhoneStore } from '#shared/io/identity/phone-store.ts'
import { createSealer } from '#shared/io/keys/console-keys.ts'
import { createKnownForm } from '#shared/io/keys/key-form.ts'
import { connectNats, type Nats } from '#shared/io/nats/connection.ts'
import { ensureStreams } from '#shared/io/nats/streams/ensure-streams.ts'
import { createPasswordHasher } from '#shared/io/operators/password-hash.ts'
import { createPostgres, type Postgres } from '#shared/io/postgres/postgres.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createEventListStore } from '#shared/io/telemetry/event-list-store.ts'
import { queryRequestLogs } from '#shared/io/telemetry/request-log-queries.ts'
import {
  listTenantsToReproject,
  proveOthersAgain,
} from '#shared/io/tenants/directory/directory-scan.ts'
import {
  openTenantDirectory,
  type TenantDirectory,
} from '#shared/io/tenants/directory/edge-directory.ts'
import { listEdges } from '#shared/io/tenants/directory/list-edges.ts'
import {
  createTenantProjection,
  type TenantProjection,
} from '#shared/io/tenants/directory/tenant-projection.ts'
import { listStaleSecretRequests } from '#shared/io/tenants/stale-secret-requests.ts'
import type { FleetRouteDeps } from '../../../services/console/analytics/fleet/fleet-routes.ts'
import type { AnalystDeps } from '../../../services/console/analytics/manage-analysts.ts'
import type { RulePerformanceDeps } from '../../../services/console/analytics/rule-performance-routes.ts'
import type { SignalRouteDeps } from '../../../services/console/analytics/signal-routes.ts'
import type { AttestationCheckDeps } from '../../../services/console/attestation/check-routes.ts'
import type { CoverageRouteDeps } from '../../../services/console/attestation/coverage-routes.ts'
import type { DeliveryDeps } from '../../../services/console/deliveries/manage-deliveries.ts'
import type { EntityDeps } from '../../../services/console/entities/entity-routes.ts'
import type { TimelineDeps } from '../../../services/console/entities/read-timeline.ts'
import type { SignalChangeDeps } from '../../../services/console/entities/signal-change-routes.ts'
import type { EraseRouteDeps } from '../../../services/console/erasure/erasure-routes.ts'
import type { EventCountDeps } from '../../../services/console/events/event-count-routes.ts'
import type { EventListDeps } from '../../../services/console/events/event-list-routes.ts'
import type { ExplainDeps } from '../../../services/console/events/explain-event.ts'
import type { RewrapDeps } from '../../../services/console/keys/rewrap.ts'
import type { NetworkRouteDeps } from '../../../services/console/network/network-routes.ts'
import type { NetworkUseDeps } from '../../../services/console/network/network-use-routes.ts'
import type { OperatorDeps } from '../../../services/console/operators/operator-deps.ts'
import type { PeriodOverviewDeps } from '../../../services/console/overview/overview-routes.ts'
import type { BacktestRouteDeps } from '../../../services/console/policies/backtest-routes.ts'
import type { ScoreRouteDeps } from '../../../services/console/policies/score-routes.ts'
import type { ShadowRouteDeps } from '../../../services/console/policies/shadow-routes.ts'
import type { SuggestionRouteDeps } from '../../../services/console/policies/suggestion-routes.ts'
import type { ReconciliationRouteDeps } from '../../../services/console/reconciliation/reconciliation-routes.ts'
import type { RecoveryRouteDeps } from '../../../services/console/recovery/recovery-routes.ts'
import type { AddressRouteDeps } from '../../../services/console/tenants/address-routes.ts'
import { createDirectoryWriter } from '../../../services/console/tenants/directory.ts'
import type { EdgeRouteDeps } from '../../../services/console/tenants/edge-routes.ts'
import type { ManageDeps } from '../../../services/console/tenants/manage-tenants.ts'
import type { RequestLogRouteDeps } from '../../../services/console/tenants/request-log-routes.ts'
import type { RotationDeps } from '../../../services/console/tenants/rotation.ts'
import type { StaleSecretDeps } from '../../../services/console/tenants/stale-secret-routes.ts'
import { until } from '../process/until.ts'
import { startNats, type TestNats } from '../servers/nats/nats-server.ts'
import { startPostgres, type TestPostgres } from '../servers/postgres-server.ts'
import { edgeKeysOf, putSynced } from '../telemetry/edge-rig.ts'

export const testLog = createLog('test', 'silent')
const nowMs = () => performance.now()
const passwords = createPasswordHasher()
/** No server listens on this port. */
const absentClickhouse = createClickhouse('http://127.0.0.1:1', { name: 'test' })

export type TestEdge = {
  directory: TenantDirectory
  nats: Nats
  /** This edge's verdict on a body signed with this secret. */
  judge: (tenantId: string, secret: string) => 'accepted' | 'refused' | 'unavailable'
  close: () => Promise<void>
}

export type ConsoleRig = {
  postgresUrl: string
  masterKey: string
  postgres: Postgres
  nats: Nats
  projection: TenantProjection
  /** Without ClickHouse: every event is unknown. */
  deps: ManageDeps &
    RecoveryRouteDeps &
    RotationDeps &
    RewrapDeps &
    ExplainDeps &
    StaleSecretDeps &
    Pick<RequestLogRouteDeps, 'queryRequestLogs'> &
    Pick<CoverageRouteDeps, 'readCoverage'> &
    EraseRouteDeps &
    EntityDeps &
    SignalChangeDeps &
    Pick<TimelineDeps, 'timelineEvents'> &
    PeriodOverviewDeps &
    RulePerformanceDeps &
    BacktestRouteDeps &
    SuggestionRouteDeps &
    ScoreRouteDeps &
    ShadowRouteDeps &
    DeliveryDeps &
    AnalystDeps &
    FleetRouteDeps &
    ReconciliationRouteDeps &
    OperatorDeps &
    EdgeRouteDeps &
    AttestationCheckDeps &
    NetworkRouteDeps &
    Pick<NetworkUseDeps, 'networks'> &
    Pick<EventListDeps, 'eventList'> &
    Pick<EventCountDeps, 'eventCounts'> &
    AddressRouteDeps &
    SignalRouteDeps
  outcomes: string[]
  /** Starts an edge, by default with the rig's keys, and waits for its lease. */
  startEdge: (masterKeys?: [string, ...string[]]) => Promise<TestEdge>
  close: () => Promise<void>
}

/**
 * One console's dependencies on a fresh database. The NATS server should be fresh as well.
 * @param masterKey the key with which edges other than the rig's own unseal
 */
export async function createConsoleRig(
  servers: { postgres: TestPostgres; nats: TestNats },
  masterKey = randomBytes(32).toString('base64'),
  { unusedPolicyMs = 60_000 }: { unusedPolicyMs?: number } = {},
): Promise<ConsoleRig> {
  const postgresUrl = await servers.postgres.createMigratedDatabase()
  const sealer = createSealer([masterKey], () => keyForm.read())
  const metrics = createMetrics('test')
  const nats = await connectNats(servers.nats.url, 'test-console', testLog)
  const postgres = createPostgres(postgresUrl, { role: 'test', log: testLog })
  const keyForm = createKnownForm(postgres)
  await keyForm.refresh()
  const renewals = createPostgres(postgresUrl, { role: 'test leases', log: testLog })
  const findNats = () => nats
  await ensureStreams(nats)
  // The database is as empty as the bucket; here no directory reconciler reports that.
  await putSynced({ nats, sealer }, 0)
  const projection = createTenantProjection({
    findNats,
    sealer,
    postgres,
    log: testLog,
    metrics,
    nowMs,
    unusedPolicyMs,
  })
  const outcomes: string[] = []
  const edges: TestEdge[] = []
  return {
    postgresUrl,
    masterKey,
    postgres,
    nats,
    projection,
    outcomes,
    deps: {
      postgres,
      leases: { renewals, work: postgres },
      sealer,
      randomBytes,
      nowMs,
      log: testLog,
      directory: createDirectoryWriter(findNats, sealer, nowMs),
      telemetryStreams: nats.telemetryStreams.length,
      onOutcome: (outcome) => outcomes.push(outcome),
      onRewrap: () => undefined,
      listEdges: () => listEdges(nats, sealer),
      networkData: { status: () => null },
      listTenantsToReproject: () => listTenantsToReproject(nats, sealer),
      proveOthersAgain: () => proveOthersAgain(nats, sealer),
      keyForm,
      requireNats: findNats,
      checkWebhookUrl: async (url) => ({ ok: true, url }),
      findEvent: async () => null,
      findDecision: async () => undefined,
      history: createHistoryStore(absentClickhouse),
      users: createUserStore(absentClickhouse),
      links: createLinkStore(absentClickhouse),
      networks: createNetworkStore(absentClickhouse),
      phones: createPhoneStore(absentClickhouse, createPhoneCorrections(postgres)),
      signalHistory: createSignalHistoryStore(absentClickhouse),
      timelineEvents: createTimelineEvents(absentClickhouse),
      eventCounts: createEventCountStore(absentClickhouse),
      eventList: createEventListStore(absentClickhouse, {
        nowMs: Date.now,
        monotonicMs: () => performance.now(),
      }),
      overview: createOverviewStore(absentClickhouse),
      loadRiskFeatures: async () => [],
      listUnknownSignals: async () => [],
      countRecentNames: async () => 0,
      countLeftOut: async () => ({ events: 0, values: 0 }),
      listStaleSecretRequests: (secret) =>
        listStaleSecretRequests(nats, sealer.proverOf('edge report'), secret),
      queryRequestLogs: (query) =>
        queryRequestLogs({ nats, prover: sealer.proverOf('request log'), ...query }),
      wallMs: Date.now,
      revokedSerials: () => null,
      findRoots: () => attestationRoots,
      passwords,
      oidc: null,
      passwordsOff: false,
      publicUrl: () => 'http://127.0.0.1:8082',
      clientUrls: { ingest: undefined, api: undefined },
      analysts: {
        clickhouse: absentClickhouse,
        database: 'device_intelligence',
        clickhouseUrl: 'http://127.0.0.1:1',
        url: null,
        isEmbedded: false,
      },
      readReconciliation: async () => ({ hours: [], asOfMs: 0 }),
      hintDelivery: (hint) => publishTenantHint(nats, hint),
      readRulePerformance: refuse,
      backtests: { start: refuse },
      suggestions: { start: refuse },
      scores: { readScores: refuse, countScores: refuse },
      compareShadow: refuse,
      fleet: { readCounts: refuse, listNewDevices: refuse, listSignals: refuse },
      readCoverage: refuse,
      prevalenceSpikes: { listSpikes: refuse, findAffected: refuse, readCheckedAt: refuse },
    },
    startEdge: async (masterKeys = [masterKey]) => {
      const edge = await startEdge(servers.nats.urlOf('ingest'), masterKeys)
      edges.push(edge)
      return edge
    },
    close: async () => {
      projection.stop()
      await Promise.all(edges.map((edge) => edge.close()))
      await Promise.all([nats.close(), postgres.close(), renewals.close()])
    },
  }
}

/** The same on servers of its own, which end with it. */
export async function startConsoleRig(
  masterKey?: string,
  options?: Parameters<typeof createConsoleRig>[2],
): Promise<ConsoleRig> {
  const [postgres, nats] = await Promise.all([startPostgres(), startNats()])
  const stop = () => Promise.all([postgres.stop(), nats.stop()])
  try {
    const rig = await createConsoleRig({ postgres, nats }, masterKey, options)
    const close = async () => {
      await rig.close()
      await stop()
    }
    return { ...rig, close }
  } catch (error) {
    await stop()
    throw error
  }
}

const refuse = async (): Promise<never> => {
  throw new Problem('unavailable', 'There is no ClickHouse here.')
}

async function startEdge(natsUrl: string, masterKeys: [string, ...string[]]): Promise<TestEdge> {
  const edgeNats = await connectNats(natsUrl, 'ingest', testLog)
  const directory = openTenantDirectory({
    nats: edgeNats,
    keys: edgeKeysOf(...masterKeys),
    log: testLog,
    metrics: createMetrics('test-edge'),
    edgeId: `edge-${randomUUID()}`,
    nowMs,
  })
  await until('the edge holds a lease', () => directory.leaseValid())
  return {
    directory,
    nats: edgeNats,
    judge: (tenantId, secret) => {
      if (!directory.leaseValid()) return 'unavailable'
      const tenant = directory.find(tenantId)
      if (tenant === undefined || tenant.status !== 'active' || tenant.key === null)
        return 'refused'
      const body = Buffer.from('{}')
      const header = signBody(body, createSecretKey(Buffer.from(secret)))
      return verifySignature(body, header, tenant.key) ? 'accepted' : 'refused'
    },
    close: async () => {
      await directory.close()
      await edgeNats.close()
    },
  }
}
