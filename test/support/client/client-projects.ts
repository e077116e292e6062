// Empty projects of people who use the client package: each installs the tarball, and has the same
// program in its own kind of JavaScript or TypeScript.
import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runNpm } from './run-npm.ts'

const projectFolder = fileURLToPath(new URL('../../..', import.meta.url))
const program = await readFile(new URL('use-client.ts.txt', import.meta.url), 'utf8')

type ProjectKind = {
  packageJson: object
  /** The program's file, and what runs it after it is compiled. */
  file: string
  runs: string
  write: () => string
  /** Options of TypeScript; absent for JavaScript. */
  compiler?: object
  /** Whether the project has the types of Node; the others have those of browsers. */
  hasNodeTypes?: boolean
}

const toModule = () => stripTypeScriptTypes(program)
const toCommonJs = () =>
  toModule()
    .replace(/^import \{([^}]*)\} from ('[^']*')/gm, 'const {$1} = require($2)')
    .replace(/^import \* as (\w+) from ('[^']*')/gm, 'const $1 = require($2)')

const strict = { strict: true, skipLibCheck: false, noEmitOnError: true, rootDir: '.' }

/** Each kind of project, by name. */
export const projectKinds: Readonly<Record<string, ProjectKind>> = {
  'JavaScript, ESM': {
    packageJson: { type: 'module' },
    file: 'main.js',
    runs: 'main.js',
    write: toModule,
  },
  'JavaScript, CommonJS': { packageJson: {}, file: 'main.js', runs: 'main.js', write: toCommonJs },
  'TypeScript, nodenext': {
    packageJson: { type: 'module' },
    file: 'main.ts',
    runs: 'main.js',
    write: () => program,
    compiler: { ...strict, module: 'nodenext', target: 'es2022', types: ['node'] },
    hasNodeTypes: true,
  },
  'TypeScript, nodenext, CommonJS': {
    packageJson: {},
    file: 'main.ts',
    runs: 'main.js',
    write: () => program,
    compiler: { ...strict, module: 'nodenext', target: 'es2022', types: ['node'] },
    hasNodeTypes: true,
  },
  'TypeScript, bundler': {
    packageJson: { type: 'module' },
    file: 'main.ts',
    runs: 'main.js',
    write: () => program,
    compiler: {
      ...strict,
      module: 'esnext',
      moduleResolution: 'bundler',
      target: 'es2022',
      lib: ['es2022', 'dom'],
      types: [],
      exactOptionalPropertyTypes: true,
    },
  },
}

/**
 * Makes a project and installs the package in it.
 * @returns its program, to be run
 */
export async function makeProject(
  folder: string,
  tarball: string,
  { packageJson, file, runs, write, compiler, hasNodeTypes }: ProjectKind,
): Promise<string> {
  await mkdir(folder)
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, ...packageJson }))
  await runNpm(['install', '--offline', tarball], folder)
  await writeFile(join(folder, file), write())
  if (compiler !== undefined) {
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: compiler }))
    if (hasNodeTypes) await linkNodeTypes(folder)
    await compile(folder, 'typescript')
  }
  return join(folder, runs)
}

async function linkNodeTypes(folder: string): Promise<void> {
  const modules = join(projectFolder, 'node_modules')
  await mkdir(join(folder, 'node_modules/@types'), { recursive: true })
  for (const name of ['@types/node', 'undici-types']) {
    await symlink(join(modules, name), join(folder, 'node_modules', name))
  }
}

/**
 * Compiles a project. It throws with what the compiler says.
 * @param compiler the package of TypeScript
 */
export async function compile(
  folder: string,
  compiler: 'typescript' | 'typescript-5',
  ...options: string[]
): Promise<void> {
  const tsc = join(projectFolder, 'node_modules', compiler, 'bin/tsc')
  try {
    await promisify(execFile)(process.execPath, [tsc, '-p', folder, ...options])
  } catch (error) {
    throw new Error((error as { stdout?: string }).stdout || String(error), { cause: error })
  }
}
