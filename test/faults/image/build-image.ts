/**
 * Builds the image of the tree. No registry is needed: the base image is made of Debian's packages
 * and the Node that the project has from npm, and stands in the place of the one that the
 * Dockerfile names.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { readOsRelease } from '../../../deploy/local/nats/nats-fetch.ts'
import { findProgram } from '../../../deploy/local/stack/launch.ts'
import { limitOptions, podman } from './podman.ts'

const run = promisify(execFile)
const projectDir = fileURLToPath(new URL('../../..', import.meta.url))

/** Of images of this drill; its own version of the image replaces the one before. */
const repository = 'localhost/device-intelligence-check'
export const imageName = `${repository}:image`

/**
 * What the base image of the Dockerfile has beside Debian: Node and npm in /usr/local, and the user
 * `node`.
 */
const baseFile = `FROM scratch
ADD debian.tar /
COPY --from=node node /usr/local/bin/node
COPY --from=npm . /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && \\
    groupadd --gid 1000 node && useradd --uid 1000 --gid node --create-home node
CMD ["node"]
`

/**
 * Makes the base image, unless a run before has made it.
 * @param version of Node, as the Dockerfile names it
 * @returns its name
 */
export async function buildBase(version: string): Promise<string> {
  const name = `${repository}:node-${version}`
  const nodeFolder = dirname(realpathSync(join(projectDir, 'node_modules/.bin/node')))
  const { stdout } = await run(join(nodeFolder, 'node'), ['--version'])
  if (stdout.trim() !== `v${version}`) {
    throw new Error(`the Dockerfile has Node ${version}, node_modules has ${stdout.trim()}`)
  }
  if ((await podman(['images', '--quiet', name])) !== '') return name
  const npm = process.env.npm_execpath ?? findProgram('npm', process.env.PATH)
  if (npm === null) throw new Error('npm is not on the path')
  const npmFolder = dirname(dirname(realpathSync(npm)))
  const release = readOsRelease('/etc/os-release')
  const suite = release.ID === 'debian' ? release.VERSION_CODENAME! : 'stable'
  const workDir = mkdtempSync(join(tmpdir(), 'di-base-image-'))
  try {
    await run('mmdebstrap', ['--quiet', '--variant=minbase', suite, join(workDir, 'debian.tar')])
    writeFileSync(join(workDir, 'Containerfile'), baseFile)
    const folders = [`node=${nodeFolder}`, `npm=${npmFolder}`]
    await podman(
      [
        ...['build', ...(await buildOptions()), '--layers=false', '--tag', name],
        ...folders.flatMap((folder) => ['--build-context', folder]),
        '.',
      ],
      workDir,
    )
  } finally {
    rmSync(workDir, { recursive: true })
  }
  return name
}

/** Builds deploy/Dockerfile as its comment says, on this base image. */
export async function buildImage(base: string): Promise<void> {
  await podman(
    [
      // Only this format keeps the health check.
      ...['build', ...(await buildOptions()), '--pull=never', '--format', 'docker'],
      ...['--build-arg', `NODE_IMAGE=${base}`, '--file', 'deploy/Dockerfile'],
      ...['--tag', imageName, '.'],
    ],
    projectDir,
  )
}

/** Both images have the same volumes: a build leaves an empty file where each was. */
async function buildOptions(): Promise<string[]> {
  const volumes = (await npmFiles()).flatMap(([from, to]) => ['--volume', `${from}:${to}:ro`])
  return [...limitOptions(), '--network', 'host', ...volumes]
}

/** The files by which npm on this machine finds its registry, where npm in the image reads them. */
async function npmFiles(): Promise<[from: string, to: string][]> {
  const read = async (key: string) =>
    (await run('npm', ['config', 'get', key], { cwd: tmpdir() })).stdout.trim()
  const cafile = await read('cafile')
  const files: [string, string][] = [
    [await read('userconfig'), '/root/.npmrc'],
    [await read('globalconfig'), '/usr/local/etc/npmrc'],
    [cafile, cafile],
  ]
  return files.filter(([from]) => from.startsWith('/') && existsSync(from))
}
