// A scripted model that speaks OpenAI's chat over HTTP, for the tests of the page. What it says depends on words of the
// request and on how far the conversation is; how fast, on `pace`.

import { createServer } from 'node:http'

const words = (text) => text.match(/\S+\s*|\s+/g) ?? []
const call = (name, args) => ({ call: { name, arguments: JSON.stringify(args) } })

const STORY = `Here is what I found.\n\n## The harbour\n\nThe **old harbour** was closed in 1974. Three things followed:\n\n1. ships moved to the new quay,\n2. the customs house became a school,\n3. the crane was kept as a monument.\n\n| year | ships |\n|---|---|\n| 1960 | 412 |\n| 1974 | 38<br>or 39 |\n\n- [x] the quay is built\n- [ ] the crane is sold\n\n> Nobody missed the smell.\n\nSee [the archive](https://archive.example/harbour) and \`notes.md\`. <img src=x onerror="document.title='hacked'"> ![beacon](https://evil.example/x.png) [bad](javascript:alert(1))`

const LONG_LINE = `    let sum: u64 = ${Array.from({ length: 40 }, (_, n) => `part_${n}`).join(' + ')};`
export const RUST = `// Counts the ships.\nfn count(name: &str) -> u64 {\n${LONG_LINE}\n    println!("{name}: {sum}");\n    sum\n}`
const WIDE = [['year', ...Array.from({ length: 16 }, (_, n) => `harbour ${n}`)], Array(17).fill('--:'), ['1974', ...Array.from({ length: 16 }, (_, n) => `${n}12,400`)]].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
const CODE = `Here it is, with \`count\`:\n\n\`\`\`rust\n${RUST}\n\`\`\`\n\n1. Then in Python:\n\n   \`\`\`python\n   def area(radius):\n       return "round"  # about\n   \`\`\`\n\n${WIDE}\n\n\`\`\`klingon\n<b onclick="alert(1)">Qapla</b>\n\`\`\`\n\nTea &amp; &#67;o &unknown; by [the ref][r], [bad](javascript:alert(1)) and [worse](javascript&colon;alert(1)).\n\n[r]: https://ref.example/ships\n\nThat is all.`

const PIECES = [
  { type: 'text', value: 'As [the archive](https://archive.example/) has it:\n\n| year | ships |\n|---|--:|\n| 1960 | 412 |\n\n3. as in the third' },
  { type: 'component', component: 'task-info', props: { id: 't1', name: 'Count the ships', status: 'completed' } },
  { type: 'json', value: { ships: 412 } },
  { type: 'webcomponent', value: '<table><tr><td colspan="2" onclick="alert(1)">See <a href="https://archive.example/ships">the ships</a>, <a href="javascript:alert(1)">not this</a>.</td></tr></table>' },
]

/** What is said next, as parts: reasoning, text, calls. */
function next(request) {
  const messages = request.messages
  const text = (message) => (typeof message.content === 'string' ? message.content : (message.content ?? []).map((part) => part.text ?? '').join(''))
  const system = messages.filter((message) => message.role === 'system').map(text).join('\n')
  const asked = messages.findLastIndex((message) => message.role === 'user')
  const wish = asked < 0 ? '' : text(messages[asked])
  const done = messages.slice(asked + 1).filter((message) => message.role === 'tool').length
  if (system.startsWith('# Planner') || system.startsWith('# 规划者')) return planner(wish)
  if (system.startsWith('# Executor') || system.startsWith('# 执行者')) return executor(wish, done)
  if (system.startsWith('# Verifier') || system.startsWith('# 验证者')) return verifier(wish)
  if (system.includes('RESEARCHER')) return researcher(done)
  if (system.includes('READER')) return done === 0 ? [call('list_files', { path: '.' })] : [{ text: 'There are two files: sales.csv and notes.md.' }]
  const wanted = [...wish.matchAll(/^make (\w+) (\{.*\})$/gm)]
  if (wanted.length > 0) return done === 0 ? wanted.map(([, name, args]) => ({ call: { name, arguments: args } })) : [{ text: `Made: ${messages.slice(asked + 1).filter((message) => message.role === 'tool').map(text).join(' | ')}` }]
  if (/the code/i.test(wish)) return [{ text: CODE }]
  if (/story/i.test(wish)) return [{ reasoning: 'The person wants a story. I look at what I know of the harbour and put it in order.' }, { text: STORY }]
  if (/write/i.test(wish)) {
    if (done === 0) return [{ text: 'I will write that down.' }, call('write_file', { path: 'report.md', content: '# Report\n\nTea sells best in Paris.\n' })]
    return [{ text: 'It is written.' }]
  }
  if (/press it/i.test(wish)) return done === 0 ? [call('press__print', { text: 'Tea sells best in Paris.' })] : [{ text: `The press: ${text(messages.at(-1))}` }]
  if (/run it/i.test(wish)) return done === 0 ? [call('run_command', { command: 'true' })] : [{ text: 'It ran, or not.' }]
  if (/in pieces/i.test(wish)) return [{ text: JSON.stringify({ content: PIECES }) }]
  if (/long reading/i.test(wish)) return [{ text: Array.from({ length: 600 }, (_, n) => `word${n}${n % 40 === 39 ? '\n\n' : ''}`).join(' ') }]
  if (/ask me/i.test(wish)) return done === 0 ? [call('ask_person', { question: /bold/.test(wish) ? 'Which **city** do you mean?' : 'Which city do you mean?', options: ['Paris', 'Berlin'] })] : [{ text: `You said: ${text(messages.at(-1))}` }]
  if (/team/i.test(wish)) {
    if (done === 0) return [{ reasoning: 'This needs a colleague.' }, call('create_role', { id: 'researcher', name: 'Researcher', rolePrompt: 'RESEARCHER: you find things out.' })]
    if (done === 1) return [call('spawn_agent', { roleId: 'researcher', agentId: 'ada' })]
    if (done === 2) return [call('request_collaboration', { requests: [{ to: 'ada', text: 'Which files are there?' }] })]
    return [{ text: 'Ada and her reader found **two files**: `sales.csv` and `notes.md`.' }]
  }
  if (/plan/i.test(wish)) {
    if (done === 0) return [call('plan', { steps: [{ text: 'Look at the files', status: 'in_progress' }, { text: 'Read the notes' }, { text: 'Answer' }] })]
    return [{ text: 'Planned.' }]
  }
  return [{ text: `You said: ${wish}` }]
}

function researcher(done) {
  if (done === 0) return [call('create_role', { id: 'reader', name: 'Reader', rolePrompt: 'READER: you read files.' })]
  if (done === 1) return [call('spawn_agent', { roleId: 'reader', agentId: 'ben' })]
  if (done === 2) return [{ reasoning: 'Ben can look.' }, call('request_collaboration', { requests: [{ to: 'ben', text: 'List the files of the workspace.' }] })]
  return [{ text: 'Ben says: two files, sales.csv and notes.md.' }]
}

const TODOS = [
  ['task-1', 'List the files of the folder', []],
  ['task-2', 'Read the notes', []],
  ['task-3', 'Compare both and write the answer', ['task-1', 'task-2']],
]

function planner() {
  const todos = TODOS.map(([id, title, dependencies], place) => ({ id, title, description: `${title}. Done when: the result is stated.`, priority: place + 1, dependencies, status: 'pending' }))
  return [{ reasoning: 'Two things can be looked at beside each other, then compared.' }, { text: JSON.stringify({ type: 'component', component: 'planner-response', summary: 'I look at the files and the notes, then compare.', needsMorePlanning: false, todos }) }]
}

function executor(wish, done) {
  const id = wish.match(/(task-\d+):/g)?.at(-1)?.slice(0, -1) ?? 'task-1'
  if (done === 0 && id !== 'task-3') return [{ reasoning: `For ${id} I look.` }, id === 'task-1' ? call('list_files', { path: '.' }) : call('read_file', { path: 'notes.md' })]
  const summary = { 'task-1': 'There are `sales.csv` and `notes.md`.', 'task-2': 'The notes say: buy milk.', 'task-3': 'The notes do not mention the table.' }[id] ?? 'It is done.'
  return [{ text: JSON.stringify({ type: 'component', component: 'executor-response', summary, taskCompleted: true, shouldContinue: false, nextAction: 'complete', todos: [{ id, status: 'completed' }] }) }]
}

function verifier(wish) {
  const shown = (id) => [...wish.matchAll(/\[([cm]\d+)\] \(([^)]*)\)/g)].filter((match) => match[2].includes(id)).map((match) => match[1])
  const all = [...wish.matchAll(/\[([cm]\d+)\]/g)].map((match) => match[1])
  const planned = [...new Set(wish.match(/task-\d+/g))]
  const tasks = planned.map((id) => ({ id, completed: true, feedback: 'It is shown by what was found.', evidence: shown(id).length ? shown(id) : all }))
  return [{ text: JSON.stringify({ type: 'component', component: 'verifier-response', allCompleted: true, userNeedsSatisfied: true, overallFeedback: 'Every task is done and shown.', summary: 'The folder holds `sales.csv` and `notes.md`. The notes say **buy milk** and do not mention the table.', improvements: [], tasks }) }]
}

/** Starts the model; `pace` is milliseconds between pieces and can be changed at any time, `last` the newest request. */
export function scriptedModel() {
  const model = { pace: 2, requests: 0, pieces: 0, last: undefined, held: undefined, refuses: 0 }
  /** Answers nobody until what this gives is called. */
  model.hold = () => {
    let go
    model.held = new Promise((resolve) => (go = resolve))
    return () => {
      model.held = undefined
      go()
    }
  }
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    if (!request.url.endsWith('/chat/completions')) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ object: 'list', data: [{ id: 'scripted', object: 'model' }] }))
      return
    }
    model.requests += 1
    model.last = JSON.parse(body)
    if (model.refuses > 0) {
      model.refuses -= 1
      response.writeHead(429, { 'content-type': 'application/json', 'retry-after': '0' }).end(JSON.stringify({ error: { message: 'slow down, please' } }))
      return
    }
    await model.held
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const send = (delta, finish = null) => response.write(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`)
    const rest = () => new Promise((resolve) => setTimeout(resolve, model.pace))
    let open = true
    response.on('close', () => (open = false))
    let calls = 0
    for (const part of next(model.last)) {
      if (part.call) {
        send({ tool_calls: [{ index: calls, id: `call_${model.requests}_${calls}`, type: 'function', function: { name: part.call.name, arguments: '' } }] })
        for (const piece of part.call.arguments.match(/.{1,12}/gs) ?? []) {
          if (!open) return
          send({ tool_calls: [{ index: calls, function: { arguments: piece } }] })
          await rest()
        }
        calls += 1
      } else {
        for (const piece of words(part.text ?? part.reasoning).flatMap((word) => word.match(/.{1,14}/gs) ?? [])) {
          if (!open) return
          model.pieces += 1
          send(part.text === undefined ? { reasoning_content: piece } : { content: piece })
          await rest()
        }
      }
    }
    send({}, calls ? 'tool_calls' : 'stop')
    response.write(`data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices: [], usage: { prompt_tokens: 900, completion_tokens: 120, total_tokens: 1020 } })}\n\n`)
    response.end('data: [DONE]\n\n')
  })
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      model.url = `http://127.0.0.1:${server.address().port}/v1`
      model.close = () => {
        server.closeAllConnections()
        server.close()
      }
      resolve(model)
    })
  })
}
