/** Suggests a policy in a thread of its own: requests must not wait for seconds of computing. */
import { parentPort, workerData } from 'node:worker_threads'
import { suggestPolicy } from '#shared/core/outcomes/suggest/suggest-policy.ts'
import type { SuggestionWork } from './suggestions.ts'

const { active, table, options } = workerData as SuggestionWork
parentPort!.postMessage(suggestPolicy(active, table, options))
