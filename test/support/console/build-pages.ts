// Builds the console's pages once, before any test of a run needs them, in a separate process as
// `npm start` does, because Vite builds larger files where NODE_ENV is `test`.
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const program = fileURLToPath(
  new URL('../../../services/console/serve/build-main.ts', import.meta.url),
)

export function setup(): void {
  const env = { ...process.env, NODE_ENV: 'production' }
  execFileSync(process.execPath, [program], { env, stdio: ['ignore', 'ignore', 'inherit'] })
}
