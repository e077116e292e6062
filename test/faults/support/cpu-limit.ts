/** Limits the CPU of a process with a control group of its own. It needs root. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const periodUs = 20_000
/** Linux counts the CPU time of processes in hundredths of a second. */
const ticksPerSecond = 100

/**
 * @param share part of a core
 * @returns ends the limit; the process goes on without it
 */
export function limitCpu(pid: number, share: number): () => void {
  const quotaUs = Math.round(share * periodUs)
  // The first version of control groups keeps CPU in a hierarchy of its own.
  const isFirst = existsSync('/sys/fs/cgroup/cpu/cgroup.procs')
  const root = isFirst ? '/sys/fs/cgroup/cpu' : '/sys/fs/cgroup'
  const group = join(root, `di-drill-${process.pid}-${pid}`)
  mkdirSync(group)
  if (isFirst) {
    writeFileSync(join(group, 'cpu.cfs_period_us'), String(periodUs))
    writeFileSync(join(group, 'cpu.cfs_quota_us'), String(quotaUs))
  } else {
    writeFileSync(join(group, 'cpu.max'), `${quotaUs} ${periodUs}`)
  }
  writeFileSync(join(group, 'cgroup.procs'), String(pid))
  return () => {
    if (existsSync(`/proc/${pid}`)) writeFileSync(join(root, 'cgroup.procs'), String(pid))
    rmdirSync(group)
  }
}

/** @returns CPU that a process has used, in ms */
export function readCpuMs(pid: number): number {
  // The name of the process, in brackets, may hold spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond
}
