/**
 * Programs that sign and send one submission, by language, each a file of `snippets/` that can be
 * run as it is. The tenant's slug has only letters, digits and dashes, so it needs no escaping.
 */
import java from './snippets/Send.java?raw'
import go from './snippets/send.go?raw'
import node from './snippets/send.mjs?raw'
import python from './snippets/send.py?raw'
import shell from './snippets/send.sh?raw'

export type Snippet = { id: string; language: string; code: string }

const programs: Snippet[] = [
  { id: 'shell', language: 'Shell', code: shell },
  { id: 'node', language: 'Node.js', code: node },
  { id: 'python', language: 'Python', code: python },
  { id: 'go', language: 'Go', code: go },
  { id: 'java', language: 'Java', code: java },
]

/** The programs for a tenant. */
export const writeSnippets = (tenantId: string): Snippet[] =>
  programs.map(({ code, ...rest }) => ({ ...rest, code: code.replaceAll('TENANT', tenantId) }))
