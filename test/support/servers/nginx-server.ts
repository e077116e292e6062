/** A real nginx for tests, as in deploy/proxy; only addresses and the certificate differ. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { awaitReady } from '../../../deploy/local/stack/await-ready.ts'
import { createLauncher, endChild } from '../../../deploy/local/stack/launch.ts'
import { choosePort } from '../../../deploy/local/stack/ports/ports.ts'
import { findDebianProgram } from './debian-program.ts'

const projectDir = fileURLToPath(new URL('../../..', import.meta.url))
const vector = (name: string) => join(projectDir, 'test/vectors', name)

export type TestNginx = { url: string; stop: () => Promise<void> }

/**
 * @param servers `host:port` of each: edges, or consoles
 * @param name the file in deploy/proxy
 */
export async function startNginx(
  servers: readonly string[],
  name: 'nginx.conf' | 'nginx-console.conf' = 'nginx.conf',
): Promise<TestNginx> {
  const program = await findDebianProgram('usr/sbin/nginx', {
    bookworm: ['nginx'],
    trixie: ['nginx'],
  })
  const dir = mkdtempSync(join(tmpdir(), 'di-nginx-'))
  const port = await choosePort({})
  const lines = servers.map((server) => `server ${server} max_fails=0;`).join(' ')
  const site = readFileSync(join(projectDir, 'deploy/proxy', name), 'utf8')
    .replace(/server 127\.0\.0\.1:808[02] max_fails=0;/, lines)
    .replace('listen 443', `listen 127.0.0.1:${port}`)
    .replace('/etc/nginx/di.crt', vector('receiver-cert.pem'))
    .replace('/etc/nginx/di.key', vector('receiver-key.pem'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${dir}/${name};`)
    .join('\n')
  const main = [
    ...['daemon off;', 'worker_processes 1;', `pid ${dir}/nginx.pid;`, 'error_log stderr warn;'],
    // Workers of root would change to a user who cannot read the folder.
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    ...['events {}', 'http {', 'access_log off;', temporary, site, '}'],
  ]
  const file = join(dir, 'nginx.conf')
  writeFileSync(file, main.join('\n'))
  const launcher = createLauncher({ pathVar: process.env.PATH })
  const { libraries } = program
  const child = launcher.launch({
    command: program.file,
    args: ['-c', file, '-p', dir],
    env: { PATH: process.env.PATH, ...(libraries ? { LD_LIBRARY_PATH: libraries } : {}) },
    orphanSignal: 'SIGTERM',
  })
  const url = `https://127.0.0.1:${port}`
  const isReady = () => answers(url)
  await awaitReady({ name: 'nginx', child, isReady, limitMs: 20_000 })
  return {
    url,
    stop: async () => {
      await endChild(child, { signal: 'SIGTERM', graceMs: 2_000 })
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

const answers = (url: string) =>
  new Promise<boolean>((resolve) => {
    request(url, { rejectUnauthorized: false }, (response) => {
      response.resume()
      resolve(true)
    })
      .on('error', () => resolve(false))
      .end()
  })
