/** Which grants the user of a connection to ClickHouse lacks. */
import { type ClickhouseNode, checkMaxMs } from './clickhouse.ts'

/**
 * @param grants GRANT statements without a grantee
 * @param limitMs of each answer
 * @returns those of them that the server does not grant, without the word GRANT
 */
export async function findMissingGrants(
  node: ClickhouseNode,
  grants: readonly string[],
  limitMs = checkMaxMs,
): Promise<string[]> {
  const missing: string[] = []
  for (const grant of grants) {
    if ((await readText(node, `check ${grant}`, limitMs)) !== '1')
      missing.push(grant.replace('GRANT ', ''))
  }
  return missing
}

/** Runs a statement with one short answer. `check grant` takes no format. */
export async function readText(
  node: ClickhouseNode,
  query: string,
  limitMs = checkMaxMs,
): Promise<string> {
  const abort_signal = AbortSignal.timeout(limitMs)
  const { stream } = await node.exec({ query, abort_signal })
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text.trim()
}
