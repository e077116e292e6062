/**
 * What may be an error of a ClickHouse client. Where an answer is no exception of ClickHouse, as
 * from a proxy between or when it was cut, the client's message is the whole answer.
 */
import { ClickHouseError } from '@clickhouse/client'
import type { ClickhouseRequests } from './replicas.ts'

/** The client's own texts, without data. */
const ownTexts: ReadonlySet<string> = new Set(['Timeout error.', 'The user aborted a request.'])

/** The client, with errors that quote no answer but an exception of ClickHouse. */
export function withKnownErrors(client: ClickhouseRequests): ClickhouseRequests {
  const known = <T>(answer: Promise<T>): Promise<T> =>
    answer.catch((error: unknown) => {
      throw toKnown(error)
    })
  return {
    query: (params) => known(client.query(params)),
    command: (params) => known(client.command(params)),
    exec: (params) => known(client.exec(params)),
    insert: (params) => known(client.insert(params)),
    close: () => client.close(),
  }
}

/** Faults of connections have a code, and defects of this code a class of their own. */
function toKnown(error: unknown): unknown {
  if (error instanceof ClickHouseError || (error as Error).constructor !== Error) return error
  const { code, message } = error as { code?: unknown; message: string }
  if (code !== undefined || ownTexts.has(message)) return error
  return new Error('ClickHouse, or a server before it, gave an answer that is not its own')
}
