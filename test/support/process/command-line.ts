/**
 * The command line in this process: as a process of its own each command takes a third of a second
 * of CPU, almost all of it to start.
 */
import type { CliEnv } from '../../../services/console/cli/context.ts'
import { runCommand } from '../../../services/console/cli/program.ts'

export type CommandResult = { status: number; stdout: string; stderr: string }

/** Runs one command with only these variables. Commands that read stdin need a process. */
export async function runDi(args: readonly string[], env: CliEnv): Promise<CommandResult> {
  let stdout = ''
  let stderr = ''
  const status = await runCommand({
    env,
    args,
    write: (text) => {
      stdout += text
    },
    writeError: (text) => {
      stderr += text
    },
  })
  return { status, stdout, stderr }
}
