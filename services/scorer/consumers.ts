/**
 * Builds and starts the two consumers of each telemetry stream: one stores messages, the other
 * decides on them. Streams share nothing but the connections and the metrics. A message is decided
 * when it and all messages before it are stored, by any scorer, up to the stored low watermark. So
 * an outage of Postgres delays no history, and decisions do not depend on the speed of a process.
 */
import type { StreamOffsets } from '#shared/core/telemetry/streams/stream-offsets.ts'
import type { TelemetryStream } from '#shared/core/telemetry/streams/telemetry-streams.ts'
import { findUnraised, raiseAlerts } from '#shared/io/alerts/raise-alerts.ts'
import type { Clickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { publishDeliveryHints } from '#shared/io/deliveries/publish-hints.ts'
import { readLastErasure } from '#shared/io/erasure/ended-erasures-store.ts'
import {
  createIdentityKeyWriter,
  type IdentityKeyWriter,
} from '#shared/io/identity/identity-key-store.ts'
import { createPhones, type Phones } from '#shared/io/identity/phones.ts'
import { createInstallWriter } from '#shared/io/installs/install-store.ts'
import { createReplayWriter } from '#shared/io/installs/replay-store.ts'
import { createProver, type Prover } from '#shared/io/keys/proofs.ts'
import type { Nats } from '#shared/io/nats/connection.ts'
import {
  type ConsumedMessage,
  type ConsumeLimits,
  type Consumption,
  consume,
} from '#shared/io/nats/consume/consume.ts'
import { readDecidedWatermark, readStoredWatermark } from '#shared/io/nats/consume/low-watermark.ts'
import { createDeadLetters } from '#shared/io/nats/dead-letters.ts'
import { observeStreams } from '#shared/io/nats/streams/stream-metrics.ts'
import { createPolicyDocuments } from '#shared/io/policies/policy-document-store.ts'
import { createShadowDecisionWriter } from '#shared/io/policies/shadow-decision-store.ts'
import type { Postgres } from '#shared/io/postgres/postgres.ts'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics } from '#shared/io/process/metrics.ts'
import { createReconciliationWriter } from '#shared/io/reconciliation/reconciliation-rows-store.ts'
import { createDecisionWriter } from '#shared/io/telemetry/decision-store.ts'
import { findEarlierEvents } from '#shared/io/telemetry/session-events-store.ts'
import { readFreedNames } from '#shared/io/telemetry/signal-names-store.ts'
import { createSignalPaths, type SignalPaths } from '#shared/io/telemetry/signal-paths.ts'
import { createTelemetryStore } from '#shared/io/telemetry/telemetry-store.ts'
import type { Tracing } from '#shared/io/tracing/tracing.ts'
import { createRiskFeatureStore } from '#shared/io/velocity/risk-features.ts'
import { type DecideBatchDeps, decideBatch } from './decide/decide-batch.ts'
import {
  type QuarantineDeps,
  quarantineUndecided,
  quarantineUnstored,
} from './decide/quarantine.ts'
import {
  createScorerObserver,
  createShadowObserver,
  type ScorerObserver,
  type ShadowObserver,
} from './metrics.ts'
import { createShadowDecisions, type ShadowDecisions } from './shadow/shadow-decisions.ts'
import { createShadowVersions } from './shadow/shadow-versions.ts'
import { createDecodedMessages, type DecodedMessages } from './store/decoded-messages.ts'
import { startErasureCheck } from './store/forget-erased.ts'
import { startNameCheck } from './store/free-signal-names.ts'
import { createReadAgain, createStoredReader } from './store/read-again.ts'
import { createStreamOffsetsReader } from './store/read-stream-offsets.ts'
import { type StoreBatchDeps, storeBatch } from './store/store-batch.ts'
import { startStreamTrimmer } from './store/trim-stream.ts'
import { traceBatch } from './trace-batch.ts'

/**
 * An insert makes a part in every table, which costs ClickHouse much the same for any number of
 * rows. So inserts are rare at a low rate: at 10 events/s (20 KB/s) one every 0.67 s, at 100/s one
 * every 0.5 s, from 2,000/s on one every 180 to 300 ms. The pause and the insert together stay
 * below the second in which an event must be visible. On busy cores inserts take longer, and then
 * fewer of them are faster in total.
 *
 * 16 MB are about 8,000 events, whose risk features are loaded at once: in a backlog an event then
 * takes ClickHouse a third less CPU than in batches of 8 MB; 24 MB gain nothing more and take 50 MB
 * of memory. With one event per message, as from an edge at a low rate, 2,048 messages are 4 MB:
 * risk features cost half as much per event as in batches of 512. Several streams share the bytes.
 */
const storeLimits = {
  batchMessagesMax: 2_048,
  batchBytesMax: 16 * 1024 * 1024,
  batchIntervalMs: 180,
  batchIntervalMaxMs: 300,
  linger: { maxMs: 700, halfBytes: 256 * 1024 },
}
/** Deciding follows storing, with a pause so that small steps of other scorers are combined. */
const decideLimits = {
  batchMessagesMax: storeLimits.batchMessagesMax,
  batchBytesMax: storeLimits.batchBytesMax,
  batchIntervalMs: 50,
  batchIntervalMaxMs: 50,
}
/**
 * Bytes of messages whose events stay decoded between storing and deciding: three full batches.
 * Several streams share them.
 */
const decodedBytesMax = 48 * 1024 * 1024

type ConsumersOptions = {
  nats: Nats
  clickhouse: Clickhouse
  postgres: Postgres
  /** The keys of the edges' proofs, as `toTelemetryKeys` returns them. */
  telemetryKeys: [string, ...string[]]
  /** How long shadow policies may delay a batch. */
  shadowDelayMaxMs: number
  /** Null while it is off. */
  tracing: Tracing | null
  log: Log
  metrics: Metrics
}

/** The consumers of one stream. */
export type StreamConsumers = {
  stream: TelemetryStream
  storing: Consumption
  deciding: Consumption
  /** What runs beside them. */
  background: { stop: () => Promise<unknown> }
  /** A warning while much of the stream is undecided, else null. */
  warning: () => Promise<string | null>
}

/** What all streams use. */
type Shared = ConsumersOptions & {
  observe: ScorerObserver
  observeShadow: ShadowObserver
  storeDeadLetters: QuarantineDeps['storeDeadLetters']
  prover: Pick<Prover, 'isProven'>
}

/** What both stages of a stream use. */
type OfStream = Shared & {
  stream: TelemetryStream
  messages: DecodedMessages
  quarantine: QuarantineDeps
  /** Of this stream, because one call writes at a time. */
  phones: Phones
  readOffsets: () => Promise<StreamOffsets>
  /** Whether an edge wrote the message. */
  isProven: (message: ConsumedMessage) => boolean
}

const nowMs = () => performance.now()

/** Starts the consumers and the trimmer of every stream, and the gauges of the streams. */
export function startConsumers(options: ConsumersOptions): StreamConsumers[] {
  const { nats, metrics } = options
  const observe = createScorerObserver(metrics, nowMs)
  const shared: Shared = {
    ...options,
    observe,
    observeShadow: createShadowObserver(metrics, observe.timed),
    storeDeadLetters: createDeadLetters({ nats, nowMs, onLost: observe.deadLetterLost }),
    prover: createProver(options.telemetryKeys),
  }
  observeStreams(nats, metrics)
  return nats.telemetryStreams.map((stream) => startStream(shared, stream))
}

function startStream(shared: Shared, stream: TelemetryStream): StreamConsumers {
  const streamDeps = createOfStream(shared, stream)
  const paths = createSignalPaths(nowMs)
  const deciding = startDeciding(streamDeps)
  const identities = createIdentityKeyWriter(streamDeps.clickhouse)
  const storing = startStoring(streamDeps, { paths, identities }, deciding.wake)
  const trimmer = startStreamTrimmer(streamDeps)
  const readFreed = (tenantIds: readonly string[]) => readFreedNames(streamDeps.postgres, tenantIds)
  const nameCheck = startNameCheck({ paths, readFreed, log: streamDeps.log })
  const erasureCheck = startErasureCheck({
    readLastErasure: () => readLastErasure(streamDeps.postgres),
    forget: () => {
      identities.forget()
      streamDeps.phones.forget()
    },
    log: streamDeps.log,
  })
  const background = {
    stop: () => Promise.all([trimmer.stop(), nameCheck.stop(), erasureCheck.stop()]),
  }
  return { stream, storing, deciding, background, warning: trimmer.warning }
}

function createOfStream(shared: Shared, stream: TelemetryStream): OfStream {
  const { nats, clickhouse, observe, prover } = shared
  const bytesMax = Math.floor(decodedBytesMax / nats.telemetryStreams.length)
  const isProven = onceEach(({ data, proof }: ConsumedMessage) => prover.isProven(proof, [], data))
  const messages = createDecodedMessages(bytesMax, isProven)
  const quarantine: QuarantineDeps = {
    messages,
    observe,
    // The id of a letter holds the offset of its message, which other streams may have as well.
    storeDeadLetters: (letters) =>
      shared.storeDeadLetters(letters.map((one) => ({ ...one, id: `${one.id}${stream.suffix}` }))),
    reconciliation: createReconciliationWriter(clickhouse, stream.number),
    log: shared.log,
    wallMs: Date.now,
  }
  const readOffsets = createStreamOffsetsReader({ ...shared, stream, wallMs: Date.now, nowMs })
  const phones = createPhones(clickhouse, shared.postgres, observe.phoneSteps)
  return { ...shared, stream, messages, quarantine, phones, readOffsets, isProven }
}

/** Computes a property of a message once: it is asked before a batch is handled and while it is. */
function onceEach(find: (message: ConsumedMessage) => boolean) {
  const found = new WeakMap<ConsumedMessage, boolean>()
  return (message: ConsumedMessage): boolean => {
    const known = found.get(message)
    if (known !== undefined) return known
    const result = find(message)
    found.set(message, result)
    return result
  }
}

/** Reads messages again that arrived other than the stream has them. */
function createRereader(
  { nats, stream: { stream }, observe, log }: OfStream,
  isProven: (message: ConsumedMessage) => boolean,
) {
  return createReadAgain({
    isProven,
    readStored: createStoredReader(nats, stream),
    onGarbled: ({ sequence: seq }) => {
      observe.garbled()
      log.error({ stream, seq }, 'a message arrived other than the stream has it')
    },
  })
}

function startStoring(
  streamDeps: OfStream,
  { paths, identities }: { paths: SignalPaths; identities: IdentityKeyWriter },
  onAcknowledged: () => void,
): Consumption {
  const { nats, stream, clickhouse, messages, observe, quarantine, readOffsets, log, metrics } =
    streamDeps
  const { tracing } = streamDeps
  const deps: StoreBatchDeps = {
    messages,
    observe,
    storeDeadLetters: quarantine.storeDeadLetters,
    telemetry: createTelemetryStore(clickhouse, { paths, stream: stream.number }),
    installs: createInstallWriter(clickhouse),
    identities,
    reconciliation: createReconciliationWriter(clickhouse, stream.number),
    wallMs: Date.now,
  }
  const readAgain = createRereader(streamDeps, streamDeps.isProven)
  const store = async (batch: readonly ConsumedMessage[]) =>
    storeBatch(await readAgain(batch), deps)
  return consume({
    nats,
    log,
    metrics,
    durable: stream.scorer,
    readOffsets,
    limits: shareBytes(storeLimits, nats),
    handle: (batch) =>
      tracing === null ? store(batch) : traceBatch(tracing, 'store', batch, () => store(batch)),
    quarantine: (message, error) => quarantineUnstored(message, error, quarantine),
    acknowledged: onAcknowledged,
  })
}

function startDeciding(streamDeps: OfStream): Consumption {
  const { nats, stream, quarantine, readOffsets, log, metrics, tracing } = streamDeps
  const deps = createDecideDeps(streamDeps)
  const readAgain = createRereader(
    streamDeps,
    (message) => streamDeps.messages.isKept(message) || streamDeps.isProven(message),
  )
  const decide = async (batch: readonly ConsumedMessage[], using: DecideBatchDeps) =>
    decideBatch(await readAgain(batch), using)
  return consume({
    nats,
    log,
    metrics,
    durable: stream.decider,
    readOffsets,
    limits: shareBytes(decideLimits, nats),
    readyUpTo: () => readStoredWatermark(nats, stream),
    handle: (batch) =>
      tracing === null
        ? decide(batch, deps)
        : traceBatch(tracing, 'decide', batch, (traceparents) =>
            decide(batch, raiseTraced(deps, traceparents)),
          ),
    quarantine: (message, error) =>
      quarantineUndecided(message, error, { ...quarantine, decide: deps }),
  })
}

/** The deliveries of the alerts that traced events raise continue their traces. */
function raiseTraced(
  deps: DecideBatchDeps,
  traceparents: ReadonlyMap<string, string>,
): DecideBatchDeps {
  if (traceparents.size === 0) return deps
  return {
    ...deps,
    raiseAlerts: (candidates) =>
      deps.raiseAlerts(
        candidates.map((candidate) => {
          const traceparent = traceparents.get(candidate.eventId)
          return traceparent === undefined ? candidate : { ...candidate, traceparent }
        }),
      ),
  }
}

function shareBytes(limits: ConsumeLimits, { telemetryStreams }: Nats): ConsumeLimits {
  const batchBytesMax = Math.floor(limits.batchBytesMax / telemetryStreams.length)
  return { ...limits, batchBytesMax }
}

function createDecideDeps(streamDeps: OfStream): DecideBatchDeps {
  const { messages, observe, clickhouse, postgres, nats, stream, phones } = streamDeps
  return {
    messages,
    observe,
    shadow: createShadow(streamDeps),
    reconciliation: createReconciliationWriter(clickhouse, stream.number),
    decisions: createDecisionWriter(clickhouse),
    replays: createReplayWriter(clickhouse),
    phones,
    loadRiskFeatures: createRiskFeatureStore(clickhouse, phones).loadRiskFeatures,
    findPolicy: createPolicyDocuments(postgres).findPolicy,
    readDecidedWatermark: () => readDecidedWatermark(nats, stream),
    findEarlierEvents: (query) => findEarlierEvents(clickhouse, query),
    findUnraised: (candidates) => findUnraised(postgres, candidates),
    raiseAlerts: (candidates) => raiseAlerts(postgres, candidates),
    publishHints: (raised) => publishDeliveryHints(nats, raised, observe.hintFailed),
  }
}

function createShadow({ clickhouse, postgres, phones, observeShadow, log, ...options }: OfStream) {
  const decisions: ShadowDecisions = createShadowDecisions({
    versions: createShadowVersions(postgres, nowMs),
    findPolicy: createPolicyDocuments(postgres).findPolicy,
    loadRiskFeatures: createRiskFeatureStore(clickhouse, phones).loadRiskFeatures,
    insertDecisions: createShadowDecisionWriter(clickhouse).insertDecisions,
    observe: observeShadow,
    log,
    nowMs,
    delayMaxMs: options.shadowDelayMaxMs,
  })
  return decisions
}
