/** Builds what the routes of the admin API depend on, from the connections of the pages. */

import { randomBytes } from 'node:crypto'
import { unavailable } from '#shared/core/http/problem.ts'
import type { RevokedSerials } from '#shared/core/installs/revoked-serials.ts'
import { createEventCountStore } from '#shared/io/analytics/event-count-store.ts'
import { createFleetStore } from '#shared/io/analytics/fleet-store.ts'
import { createOverviewStore } from '#shared/io/analytics/overview-store.ts'
import { createPrevalenceSpikeStore } from '#shared/io/analytics/prevalence-spike-store.ts'
import { createRulePerformanceStore } from '#shared/io/analytics/rule-performance-store.ts'
import { readTestRoots } from '#shared/io/attestation/test-roots.ts'
import { databaseOf } from '#shared/io/clickhouse/clickhouse.ts'
import { checkWebhookTarget } from '#shared/io/deliveries/outbound/outbound-client.ts'
import { publishTenantHint } from '#shared/io/deliveries/publish-hints.ts'
import { createHistoryStore } from '#shared/io/devices/history-store.ts'
import { createLinkStore } from '#shared/io/devices/link-store.ts'
import { createNetworkStore } from '#shared/io/devices/network-store.ts'
import { createSignalHistoryStore } from '#shared/io/devices/signal-history-store.ts'
import { createTimelineEvents } from '#shared/io/devices/timeline-events-store.ts'
import { createUserStore } from '#shared/io/devices/user-store.ts'
import { createPhoneCorrections } from '#shared/io/identity/phone-corrections.ts'
import { createPhoneStore } from '#shared/io/identity/phone-store.ts'
import { createPhones } from '#shared/io/identity/phones.ts'
import { createCoverageReader } from '#shared/io/installs/coverage-store.ts'
import type { Sealer } from '#shared/io/keys/console-keys.ts'
import type { KnownForm } from '#shared/io/keys/key-form.ts'
import type { NetworkData } from '#shared/io/network/network-data.ts'
import { createOidcClient } from '#shared/io/operators/oidc-client.ts'
import { createPasswordHasher } from '#shared/io/operators/password-hash.ts'
import { createScoreStore } from '#shared/io/outcomes/score-store.ts'
import { createShadowComparisonStore } from '#shared/io/policies/shadow-comparison-store.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createEventListStore } from '#shared/io/telemetry/event-list-store.ts'
import { createEventStore } from '#shared/io/telemetry/event-store.ts'
import { queryRequestLogs } from '#shared/io/telemetry/request-log-queries.ts'
import { createUnknownSignalStore } from '#shared/io/telemetry/unknown-signal-store.ts'
import {
  listTenantsToReproject,
  proveOthersAgain,
} from '#shared/io/tenants/directory/directory-scan.ts'
import { listEdges } from '#shared/io/tenants/directory/list-edges.ts'
import { listStaleSecretRequests } from '#shared/io/tenants/stale-secret-requests.ts'
import { createRiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import type { ConsoleDeps } from './app.ts'
import { type ConsoleConfig, toOidcSettings } from './config.ts'
import type { Connections } from './connections.ts'
import type { Backtests } from './policies/backtest.ts'
import type { Suggestions } from './policies/suggestions.ts'
import { createDirectoryWriter } from './tenants/directory.ts'
import { createDemoReporter } from './tenants/report-demo-credentials.ts'
import { countRotations } from './tenants/rotation.ts'

/** What the dependencies are made from. */
type ConsoleParts = {
  config: ConsoleConfig
  connections: Connections
  sealer: Sealer
  keyForm: KnownForm
  backtests: Backtests
  suggestions: Suggestions
  networkData: NetworkData
  log: Log
  metrics: Metrics
  /** The monotonic clock, and the wall clock. */
  nowMs: () => number
  wallMs: () => number
  /** The status list of revoked certificates; null without one. */
  revokedSerials: () => RevokedSerials | null
  /** The address that browsers use. */
  publicUrl: () => string
}

export function createConsoleDeps(parts: ConsoleParts): ConsoleDeps {
  const {
    config,
    connections,
    sealer,
    keyForm,
    backtests,
    suggestions,
    log,
    metrics,
    nowMs,
    wallMs,
  } = parts
  const { postgres, clickhouse, findNats } = connections
  const rewraps = metrics.counter(
    'di_secrets_rewrapped_total',
    'Secrets that were sealed again under MASTER_KEY, and tenants for which that failed',
    ['outcome'],
  )
  const requestLogProver = sealer.proverOf('request log')
  const requireNats = () => {
    const nats = findNats()
    if (nats?.connected() !== true) throw unavailable('NATS is not connected.')
    return nats
  }
  const oidc = toOidcSettings(config)
  const events = createEventStore(clickhouse)
  return {
    postgres,
    leases: connections.leases,
    sealer,
    log,
    nowMs,
    randomBytes,
    adminToken: config.ADMIN_TOKEN,
    passwords: createPasswordHasher(),
    oidc: oidc === null ? null : createOidcClient(oidc),
    passwordsOff: config.OIDC_ONLY,
    publicUrl: parts.publicUrl,
    clientUrls: { ingest: config.PUBLIC_INGEST_URL, api: config.PUBLIC_API_URL },
    directory: createDirectoryWriter(findNats, sealer, nowMs),
    telemetryStreams: config.TELEMETRY_STREAMS,
    onOutcome: countRotations(metrics),
    onRotated: createDemoReporter(process),
    onRewrap: (outcome, count) => rewraps.inc({ outcome }, count),
    networkData: parts.networkData,
    listEdges: async () => listEdges(requireNats(), sealer),
    listTenantsToReproject: async () => listTenantsToReproject(requireNats(), sealer),
    proveOthersAgain: async () => proveOthersAgain(requireNats(), sealer),
    keyForm,
    requireNats,
    checkWebhookUrl: (url, environment) =>
      checkWebhookTarget(url, {
        environment,
        allowPrivate: config.ALLOW_PRIVATE_WEBHOOKS,
        allowNetworks: config.WEBHOOK_ALLOW_NETWORKS,
      }),
    hintDelivery: async (hint) => publishTenantHint(requireNats(), hint),
    findEvent: events.findEvent,
    findDecision: events.findDecision,
    eventCounts: createEventCountStore(clickhouse),
    eventList: createEventListStore(clickhouse, { nowMs: wallMs, monotonicMs: nowMs }),
    history: createHistoryStore(clickhouse),
    users: createUserStore(clickhouse),
    links: createLinkStore(clickhouse),
    networks: createNetworkStore(clickhouse),
    phones: createPhoneStore(clickhouse, createPhoneCorrections(postgres)),
    signalHistory: createSignalHistoryStore(clickhouse),
    timelineEvents: createTimelineEvents(clickhouse),
    overview: createOverviewStore(clickhouse),
    loadRiskFeatures: createRiskFeatureStore(clickhouse, createPhones(clickhouse, postgres))
      .loadRiskFeatures,
    readReconciliation: connections.reconciliation.readReconciliation,
    readRulePerformance: createRulePerformanceStore(clickhouse).readRulePerformance,
    compareShadow: createShadowComparisonStore(clickhouse).compareShadow,
    prevalenceSpikes: createPrevalenceSpikeStore(clickhouse),
    fleet: createFleetStore(clickhouse),
    readCoverage: createCoverageReader(clickhouse),
    ...createUnknownSignalStore(clickhouse),
    listStaleSecretRequests: async (secret) =>
      listStaleSecretRequests(requireNats(), sealer.proverOf('edge report'), secret),
    queryRequestLogs: async (query) =>
      queryRequestLogs({ nats: requireNats(), prover: requestLogProver, ...query }),
    analysts: {
      clickhouse,
      database: databaseOf(config.CLICKHOUSE_URL),
      clickhouseUrl: config.CLICKHOUSE_URL,
      url: config.ANALYSTS_URL ?? null,
      isEmbedded: config.CLICKHOUSE_EMBEDDED,
    },
    wallMs,
    scores: createScoreStore(clickhouse),
    backtests,
    suggestions,
    revokedSerials: parts.revokedSerials,
    findRoots: readTestRoots(config.ATTESTATION_TEST_ROOTS_FILE),
  }
}
