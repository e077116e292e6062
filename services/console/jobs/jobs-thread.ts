/**
 * Runs the jobs in a thread of their own (`jobs-worker.ts`), so that a slow page delays no job and
 * a job no page. A thread and not a process: the console stays one process to start, watch and
 * stop, and a thread that dies ends it with the reason, so that its supervisor starts both again.
 */
import { Worker } from 'node:worker_threads'
import type { Log } from '#shared/io/process/log.ts'
import type { Metrics, MetricValues } from '#shared/io/process/metrics.ts'
import { within } from '#shared/io/process/pause.ts'
import type { ConsoleConfig } from '../config.ts'

/** What the thread is started with. */
export type JobsSettings = { config: ConsoleConfig }

/** What the thread is asked for, and what it answers. */
export type JobsAnswers = {
  metrics: MetricValues
  /** What a job cannot reach; null when nothing. */
  fault: string | null
  /** What an operator must recover (see `recovery`): tenants, keys, webhooks and erasures. */
  pending: number
}
export type JobsQuestion = { id: number; about: keyof JobsAnswers } | { about: 'stop' }
export type JobsAnswer = { id: number; answer: JobsAnswers[keyof JobsAnswers] }

export type JobsThread = {
  /** The metrics of the jobs; none when the thread does not answer. */
  readMetrics: () => Promise<MetricValues>
  /** For `/readyz`: null while the thread answers and reaches its stores, else the reason. */
  checkReady: () => Promise<string | null>
  /** For `/readyz`: what waits for an operator, null when nothing does. */
  checkRecovery: () => Promise<string | null>
  /** Ends the jobs in order. A job that has not ended after `limitMs` is cut; it is repeated. */
  stop: (limitMs: number) => Promise<void>
}

/** Below the second that a check of `/readyz` may take. */
const answerMaxMs = 800

/** Starts the thread. A failure of it is an uncaught error of the process. */
export function startJobsThread(options: {
  config: ConsoleConfig
  log: Log
  metrics: Metrics
}): JobsThread {
  const { config, log } = options
  const settings: JobsSettings = { config }
  const worker = new Worker(new URL('./jobs-worker.ts', import.meta.url), {
    name: 'jobs',
    workerData: settings,
  })
  const asked = new Map<number, (answer: never) => void>()
  let lastId = 0
  let state: 'running' | 'stopping' | 'ended' = 'running'
  const ended = new Promise((resolve) => worker.once('exit', resolve))
  worker.on('message', ({ id, answer }: JobsAnswer) => asked.get(id)?.(answer as never))
  worker.on('error', (error) => {
    state = 'ended'
    throw error
  })
  worker.on('exit', (code) => {
    const before = state
    state = 'ended'
    if (before === 'running') throw new Error(`the thread of the jobs ended with code ${code}`)
  })

  const answerSeconds = options.metrics.gauge(
    'di_jobs_answer_seconds',
    'How long the thread of the background jobs took to answer; 1 when it did not answer in time',
  )
  const ask = async <K extends keyof JobsAnswers>(
    about: K,
  ): Promise<JobsAnswers[K] | undefined> => {
    const id = ++lastId
    const { promise, resolve } = Promise.withResolvers<JobsAnswers[K]>()
    asked.set(id, resolve)
    worker.postMessage({ id, about } satisfies JobsQuestion)
    const answered = await within(promise, answerMaxMs)
    asked.delete(id)
    return answered ? await promise : undefined
  }
  return {
    readMetrics: async () => {
      const startMs = performance.now()
      const values = await ask('metrics')
      answerSeconds.set(values === undefined ? 1 : (performance.now() - startMs) / 1000)
      return values ?? []
    },
    checkReady: async () => {
      const fault = await ask('fault')
      return fault === undefined ? 'do not answer' : fault
    },
    checkRecovery: async () => {
      const pending = (await ask('pending')) ?? 0
      if (pending === 0) return null
      return `is pending: ${pending} things that Postgres has forgotten, see \`di recovery list\``
    },
    stop: async (limitMs) => {
      if (state === 'ended') return
      state = 'stopping'
      worker.postMessage({ about: 'stop' } satisfies JobsQuestion)
      if (await within(ended, limitMs)) return
      log.warn({ limitMs }, 'a job did not end in time; it is repeated at the next start')
      await worker.terminate()
    },
  }
}
