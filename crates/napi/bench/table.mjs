// The table of figures, as `cargo bench` prints its own: a line for each, written as soon as it is known.
import { loadavg } from 'node:os'

/** A table of the figures whose group's name contains a filter, or of all. */
export class Table {
  #filters

  constructor(filters) {
    this.#filters = filters
    console.log(`${'what'.padEnd(62)} ${'measured'.padStart(10)}  ${'at most'.padStart(10)}  ${'ratio'.padStart(6)}`)
  }

  /** Whether a group is wanted: then its name is written, and what else the machine does. */
  wants(group) {
    const wanted = this.#filters.length === 0 || this.#filters.some((filter) => group.includes(filter))
    if (wanted) console.log(`-- ${group} (load ${loadavg()[0].toFixed(2)})`)
    return wanted
  }

  /** A figure, and what it may be at most, in milliseconds. */
  figure(what, measured, most) {
    const ratio = measured / most
    const [shown, bound] = [measured, most].map((milliseconds) => written(milliseconds).padStart(10))
    console.log(`${what.padEnd(62)} ${shown}  ${bound}  ${ratio.toFixed(2).padStart(6)}  ${ratio <= 1 ? 'ok' : 'OVER'}`)
  }
}

function written(milliseconds) {
  return milliseconds < 1_000 ? `${milliseconds.toFixed(2)}ms` : `${(milliseconds / 1_000).toFixed(2)}s`
}

/** The value that so large a part of the values is below. */
export function percentile(values, part) {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.floor((sorted.length - 1) * part)]
}
