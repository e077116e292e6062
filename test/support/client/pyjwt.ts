/** Python with PyJWT, for the example that uses it. */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cacheFolder } from '#shared/io/process/cache-folder.ts'

const run = promisify(execFile)
const projectFolder = fileURLToPath(new URL('../../..', import.meta.url))

/**
 * Installs PyJWT into the cache folder, once, unless Python has it.
 * @returns the environment that Python finds it with
 */
export async function providePyjwt(): Promise<Record<string, string>> {
  const has = (modules: string, env: Record<string, string> = {}) =>
    run('python3', ['-c', `import ${modules}`], { env: { ...process.env, ...env } }).then(
      () => true,
      () => false,
    )
  if (await has('cryptography, jwt')) return {}
  const folder = join(cacheFolder(process.env, projectFolder), 'pyjwt')
  const env = { PYTHONPATH: folder }
  if (existsSync(folder) && (await has('cryptography, jwt', env))) return env
  const made = mkdtempSync(`${folder}-`)
  const wanted = (await has('cryptography')) ? 'PyJWT' : 'PyJWT[crypto]'
  await run('python3', ['-m', 'pip', 'install', '--quiet', '--target', made, wanted])
  rmSync(folder, { recursive: true, force: true })
  renameSync(made, folder)
  return env
}
