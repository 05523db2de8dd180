// An agent of the Agent Client Protocol: asks for permission to run the command in its prompt, and
// reports the answer and its model.
import { createInterface } from 'node:readline'

let model = 'small'
let prompt

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const update = (change) => send({ method: 'session/update', params: { sessionId: 'own', update: change } })
const option = {
  id: 'which', name: 'Model', category: 'model', type: 'select',
  options: ['small', 'large'].map((value) => ({ value, name: value })),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line)
  if (method === 'initialize') send({ id, result: { protocolVersion: 1 } })
  if (method === 'session/new') {
    send({ id, result: { sessionId: 'own', configOptions: [{ ...option, currentValue: model }] } })
  }
  if (method === 'session/set_config_option') {
    model = params.value
    send({ id, result: { configOptions: [] } })
  }
  if (method === 'session/prompt') {
    prompt = id
    const toolCall = {
      toolCallId: 'call', title: 'Run', kind: 'execute', rawInput: { command: params.prompt[0].text },
    }
    const options = [
      { optionId: 'yes', name: 'Yes', kind: 'allow_once' }, { optionId: 'no', name: 'No', kind: 'reject_once' },
    ]
    send({ id: 'request', method: 'session/request_permission', params: { sessionId: 'own', toolCall, options } })
  }
  if (id === 'request') {
    const chosen = result.outcome.optionId
    update({ sessionUpdate: 'tool_call_update', toolCallId: 'call', status: chosen === 'yes' ? 'completed' : 'failed' })
    const text = `${model}: ${chosen}`
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } })
    send({ id: prompt, result: { stopReason: 'end_turn' } })
  }
}
