/** Suggests a policy in a thread of its own: it computes for seconds, and requests must not wait. */
import { parentPort, workerData } from 'node:worker_threads'
import { suggestPolicy } from '#shared/core/outcomes/suggest/suggest-policy.ts'
import type { SuggestionWork } from './suggestions.ts'

const { active, table, options } = workerData as SuggestionWork
parentPort!.postMessage(suggestPolicy(active, table, options))
