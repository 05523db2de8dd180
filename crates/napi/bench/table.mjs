// The table of figures, in the format of `cargo bench`. A line is printed as soon as its figure is
// known.
import { loadavg } from 'node:os'

/**
 * A table of the figures in all groups whose name contains a filter; without filters, in all
 * groups.
 */
export class Table {
  #filters

  constructor(filters) {
    this.#filters = filters
    console.log(`${'figure'.padEnd(62)} ${'measured'.padStart(10)}  ${'at most'.padStart(10)}  ${'ratio'.padStart(6)}`)
  }

  /** Whether to measure a group. If so, prints its name and the load of the machine. */
  wants(group) {
    const wanted = this.#filters.length === 0 || this.#filters.some((filter) => group.includes(filter))
    if (wanted) console.log(`-- ${group} (load ${loadavg()[0].toFixed(2)})`)
    return wanted
  }

  /** Prints a figure and its bound, both in milliseconds. */
  figure(name, measured, limit) {
    const ratio = measured / limit
    const [shown, bound] = [measured, limit].map((milliseconds) => format(milliseconds).padStart(10))
    console.log(`${name.padEnd(62)} ${shown}  ${bound}  ${ratio.toFixed(2).padStart(6)}  ${ratio <= 1 ? 'ok' : 'OVER'}`)
  }
}

function format(milliseconds) {
  return milliseconds < 1_000 ? `${milliseconds.toFixed(2)}ms` : `${(milliseconds / 1_000).toFixed(2)}s`
}

/** Returns the value below which this part of the values lies. */
export function percentile(values, part) {
  const sorted = values.toSorted((left, right) => left - right)
  return sorted[Math.floor((sorted.length - 1) * part)]
}
