/** Signals to a process and all processes below it, such as a server and its workers. */
import { readdirSync, readFileSync } from 'node:fs'

/** @returns the ids of the process and of its descendants that run at the moment */
export function listTree(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    const parent = parentOf(Number(name))
    if (parent !== null) children.set(parent, [...(children.get(parent) ?? []), Number(name)])
  }
  const found = parentOf(pid) === null ? [] : [pid]
  for (let at = 0; at < found.length; at++) found.push(...(children.get(found[at]!) ?? []))
  return found
}

/** Null for a process that has ended. */
function parentOf(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return null
  }
}

/** @returns the processes that got the signal */
export function signalTree(pid: number, signal: NodeJS.Signals): number[] {
  return listTree(pid).filter((one) => {
    try {
      return process.kill(one, signal)
    } catch {
      return false
    }
  })
}
