// The operating-system user of the embedded engine. A process that root starts changes to its own
// user before the engine runs, so the engine's functions read neither the stack's secrets nor the
// other servers' data. A process of an ordinary user has namespaces instead (isolation.ts).
import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { changeOwner } from '../stack/change-owner.ts'

/** No account has this id, so it owns no other program's files. */
const engineUser = { uid: 65_533, gid: 65_533 }

const othersMayEnter = 0o001

/**
 * Changes to the engine's user where root runs this process, and makes that user the owner of the
 * data folder. Everything that the process loads from folders of root must be loaded by then.
 * @returns why it stays root, or null
 */
export function becomeEngineUser(dataDir: string): string | null {
  if (process.getuid?.() !== 0) return null
  const closed = findClosedFolder(dataDir)
  if (closed !== null) return `only root may enter ${closed}, so the engine runs as root`
  changeOwner(dataDir, engineUser)
  // The engine looks at its working directory, which may be one that only root may enter.
  process.chdir(dataDir)
  process.setgroups?.([])
  process.setgid?.(engineUser.gid)
  process.setuid?.(engineUser.uid)
  return null
}

/** A folder above the data folder that only its owner may enter, or null. */
export function findClosedFolder(dataDir: string): string | null {
  for (let folder = dirname(dataDir); ; folder = dirname(folder)) {
    if ((statSync(folder).mode & othersMayEnter) === 0) return folder
    if (folder === dirname(folder)) return null
  }
}
