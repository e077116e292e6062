/** The thread of the jobs: connects, starts them, answers the console's process, and drains. */
import { parentPort, workerData } from 'node:worker_threads'
import { checkClickhouse } from '#shared/io/clickhouse/clickhouse.ts'
import { createSealer, toMasterKeys } from '#shared/io/keys/console-keys.ts'
import { createKnownForm } from '#shared/io/keys/key-form.ts'
import { createFaultReporter } from '#shared/io/process/connect-faults.ts'
import { createStopSteps } from '#shared/io/process/lifecycle.ts'
import { createLog } from '#shared/io/process/log.ts'
import { createMetrics } from '#shared/io/process/metrics.ts'
import { createTenantProjection } from '#shared/io/tenants/directory/tenant-projection.ts'
import { mutationMaxMs, openConnections } from '../connections.ts'
import { createDirectoryWriter } from '../tenants/directory.ts'
import { startJobs } from './jobs.ts'
import type { JobsAnswers, JobsQuestion, JobsSettings } from './jobs-thread.ts'

const { config } = workerData as JobsSettings
const port = parentPort!
const log = createLog('console', config.LOG_LEVEL).child({ thread: 'jobs' })
const metrics = createMetrics('console', { isThread: true })
const steps = createStopSteps(log)
const connections = openConnections({
  config,
  steps,
  log,
  metrics,
  name: 'console jobs',
  longMaxMs: mutationMaxMs,
})
const { postgres, findNats, natsFault } = connections
const keyForm = createKnownForm(postgres)
const sealer = createSealer(toMasterKeys(config), keyForm.read)
steps.onStop('key form', keyForm.start(log).stop)
// The start does not wait for ClickHouse; a failure is logged at once.
void checkClickhouse(connections.clickhouse, createFaultReporter('ClickHouse', log))
const shared = { log, metrics, nowMs: () => performance.now(), wallMs: Date.now }

const jobs = startJobs({
  ...shared,
  steps,
  sealer,
  connections,
  projection: createTenantProjection({ findNats, sealer, postgres, ...shared }),
  directory: createDirectoryWriter(findNats, sealer, shared.nowMs),
})

const answers: { [K in keyof JobsAnswers]: () => Promise<JobsAnswers[K]> } = {
  metrics: () => metrics.registry.getMetricsAsJSON(),
  pending: async () => jobs.countPending(),
  fault: async () => {
    const faults = { postgres: await postgres.checkReady(), nats: natsFault() }
    const found = Object.entries(faults).find(([, fault]) => fault !== null)
    return found === undefined ? null : found.join(' ')
  },
}

port.on('message', async (question: JobsQuestion) => {
  if (question.about === 'stop') {
    await steps.run()
    process.exit()
  }
  port.postMessage({ id: question.id, answer: await answers[question.about]() })
})
