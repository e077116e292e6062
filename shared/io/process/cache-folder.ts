/** Where this project keeps what it can fetch or make again: programs, compiled files. */
import { mkdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

type Env = Record<string, string | undefined>

/**
 * `CACHE_DIR`, else the user's cache (shared by every clone of the project, so a second one needs
 * no network), else `.cache` in the project. Only its user can write to it.
 * @param projectDir the folder of `package.json`
 */
export function cacheFolder(env: Env, projectDir: string): string {
  if (env.CACHE_DIR) return env.CACHE_DIR
  try {
    // A user id without an entry in the user database has no home.
    const folder = join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'device-intelligence')
    mkdirSync(folder, { recursive: true })
    return folder
  } catch {
    return join(projectDir, '.cache')
  }
}

/**
 * Node keeps the compiled form of every file it loads here: a process starts in half the CPU time
 * from its second start on.
 * @returns for `NODE_COMPILE_CACHE`
 */
export function compiledFolder(env: Env, projectDir: string): string {
  return join(cacheFolder(env, projectDir), 'compiled')
}

/** The same for what this process loads from now on, unless it was started with a folder. */
export function keepCompiled(env: Env): void {
  if (env.NODE_COMPILE_CACHE) return
  enableCompileCache(compiledFolder(env, fileURLToPath(new URL('../../..', import.meta.url))))
}
