/**
 * Programs that receive a tenant's webhooks and verify `webhook-signature`, by language, each a
 * file of `receivers/`. They hold the tenant's path and port, never its secret.
 */
/// <reference path="../../vite.d.ts" />
import java from './receivers/Receive.java?raw'
import go from './receivers/receive.go?raw'
import node from './receivers/receive.mjs?raw'
import php from './receivers/receive.php?raw'
import python from './receivers/receive.py?raw'
import ruby from './receivers/receive.ru?raw'

export type Receiver = { id: string; language: string; code: string }

const programs: Receiver[] = [
  { id: 'node', language: 'Node.js', code: node },
  { id: 'python', language: 'Python', code: python },
  { id: 'java', language: 'Java', code: java },
  { id: 'go', language: 'Go', code: go },
  { id: 'php', language: 'PHP', code: php },
  { id: 'ruby', language: 'Ruby', code: ruby },
]

const usual = { path: '/hook', port: '9000' }

/** The programs for a tenant whose webhook has this URL, or none yet. */
export function writeReceivers(tenantId: string, url: string | null): Receiver[] {
  const { path, port } = readTarget(url)
  return programs.map(({ code, ...rest }) => ({
    ...rest,
    code: code
      .replaceAll('TENANT', tenantId)
      .replaceAll('WEBHOOK_PATH', path)
      .replaceAll('WEBHOOK_PORT', port),
  }))
}

/** A path with other characters than these would need escaping in some language. */
const plainPath = /^\/[\w./~-]*$/

function readTarget(url: string | null): { path: string; port: string } {
  if (url === null || !URL.canParse(url)) return usual
  const { pathname, port } = new URL(url)
  return {
    path: plainPath.test(pathname) ? pathname : usual.path,
    // Behind a proxy that ends TLS the program has a port of its own.
    port: port === '' ? usual.port : port,
  }
}
