'use strict'
// The package for `require`: the class `Sessions`, and its methods as functions for the engine in
// this process.

const { iterate, toCallback } = require('./events.js')
const { startLogging } = require('./log.js')
const native = require('./native.js')
const { checkType, checked, checkedAsync, optionsOf } = require('./refusals.js')

const { Sessions, clientOrigin, connect, start, takeLog, version } = native

/** Functions that return at once. All others return a promise. */
const SYNCHRONOUS = new Set(['sessionGetStatus', 'sessionGetPauseState', 'sessionSnapshot'])

const { prototype } = Sessions
const methodNames = Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor')
for (const name of methodNames) {
  const wrap = SYNCHRONOUS.has(name) ? checked : checkedAsync
  prototype[name] = wrap(prototype[name], name)
}

const { sessionAttach } = prototype

prototype.sessionAttach = async function (id, callback, options) {
  checkType('id', 'string', id)
  const { onEnd, onError, ...rest } = optionsOf(options, ['after', 'limit', 'keepAlive', 'onEnd', 'onError'])
  return sessionAttach.call(this, id, toCallback(callback, { onEnd, onError }), rest)
}

prototype.sessionEvents = function (id, options) {
  const attach = (deliver, rest) => sessionAttach.call(this, id, deliver, rest, true)
  return iterate(attach, (attachment) => this.sessionDetach(id, attachment), options)
}

/**
 * Wraps a class of the addon that programs construct, so that its errors are those of this package.
 */
function constructible(name) {
  const nativeClass = native[name]
  const members = nativeClass.prototype
  for (const [member, { value }] of Object.entries(Object.getOwnPropertyDescriptors(members))) {
    if (member !== 'constructor' && value) members[member] = checked(value, `${name}.${member}`)
  }
  const construct = (wrapped, args, target) =>
    checked(() => Reflect.construct(wrapped, args, target), name)(...args)
  return new Proxy(nativeClass, { construct })
}

const local = Sessions.here()

module.exports = {
  Sessions,
  AskForm: constructible('AskForm'),
  AfterAsk: constructible('AfterAsk'),
  clientOrigin: checked(clientOrigin, 'clientOrigin'),
  connect: checkedAsync(connect, 'connect'),
  start: (options) => startLogging(checked(start, 'start'), takeLog, optionsOf(options, ['config', 'stateDir', 'log'])),
  version,
}
for (const name of Object.getOwnPropertyNames(prototype)) {
  if (name !== 'constructor') module.exports[name] = local[name].bind(local)
}
