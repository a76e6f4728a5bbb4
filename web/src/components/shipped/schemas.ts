// What the shipped components take.

import type { Schema } from '../schema'

const text: Schema = { type: 'string' }
const flag: Schema = { type: 'boolean' }
const object = (properties: Record<string, Schema>, required: string[] = []): Schema => ({ type: 'object', properties, required })
const list = (items: Schema): Schema => ({ type: 'array', items })

export const todo = object(
  {
    id: text,
    title: text,
    description: text,
    status: { type: 'string', enum: ['pending', 'in_progress', 'executing', 'completed', 'failed', 'skipped'] },
    priority: { type: 'number' },
    dependencies: list(text),
    result: text,
    tools: list(text),
  },
  ['id'],
)
export const todoList = object({ todos: list(todo), onClick: text }, ['todos'])
export const planner = object({ summary: text, needsMorePlanning: flag, todos: list(todo) }, ['summary'])
export const executor = object(
  {
    summary: text,
    taskCompleted: flag,
    shouldContinue: flag,
    nextAction: { type: 'string', enum: ['continue', 'complete', 'skip', 'retry'] },
    todos: list(todo),
  },
  ['summary'],
)
export const verifier = object(
  {
    allCompleted: flag,
    userNeedsSatisfied: flag,
    overallFeedback: text,
    summary: text,
    improvements: list(text),
    tasks: list(object({ id: text, completed: flag, feedback: text, evidence: list(text) })),
  },
  ['overallFeedback'],
)
export const summary = object({ summary: text, verified: flag, missing: list(text) }, ['summary'])
export const resource = object({ id: text, name: text, kind: text, type: text, description: text, url: text, status: text }, ['id'])
export const resourceInfo = object({ resource, ...resource.properties })
export const resourceList = object({ resources: list(resource), onClick: text }, ['resources'])
export const taskInfo = object({ id: text, name: text, description: text, status: text, assignee: text, due: text, progress: { type: 'number' } })
export const htmlPage = object({ html: text, title: text }, ['html'])
