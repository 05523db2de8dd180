// A workaround for keys that Ink can't read: Ink's parser throws for a key with Ctrl that it has no
// name for, such as Ctrl+F1.

import type { EventEmitter } from 'node:events'

/** A key with or without modifiers, split as Ink does it. */
const KEY = /^\u001b+(O|N|\[\[?)(?:(\d+)(?:;(\d+))?([~^$])|(?:1;)?(\d+)?([a-zA-Z]))/

/** Keys that Ink has a name for, without their modifiers. */
const NAMED = /^(?:O[A-FHP-Sa-e]|\[[A-FHZa-e]|\[\[[A-E]|\[\[[56]~|\[(?:[1-8]|1[1-57-9]|2[0134])~|\[[235678][$^])$/

/** The bit of Ctrl in a key's modifiers. The terminal sends the modifiers plus 1. */
const CTRL_BIT = 4

/** Returns the input, without its modifiers if Ink can't read it. */
export function readable(input: string): string {
  const [, introducer = '', number = '', modifiers, end = '', letterModifiers, letter = ''] = KEY.exec(input) ?? []
  const isCtrl = ((Number(modifiers ?? letterModifiers ?? 1) - 1) & CTRL_BIT) !== 0
  const key = `${introducer}${number}${end}${letter}`
  return isCtrl && !NAMED.test(key) ? `\u001b${key}` : input
}

const patched = new WeakSet<EventEmitter>()

/** Makes the emitter of Ink's inputs emit only inputs that Ink can read. */
export function keepReadable(inputs: EventEmitter): void {
  if (patched.has(inputs)) return
  patched.add(inputs)
  const emit = inputs.emit.bind(inputs)
  inputs.emit = (event, ...args: unknown[]) => emit(event, ...args.map((arg) => (event === 'input' ? readable(String(arg)) : arg)))
}
