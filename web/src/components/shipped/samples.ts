// What the gallery shows: one example of each shipped component.

import type { Json, JsonObject } from '../../types'

const todos: Json[] = [
  { id: 't1', description: 'Read orders.csv and count its rows', status: 'completed', priority: 1, dependencies: [], result: '1,204 rows' },
  { id: 't2', description: 'Sum the revenue by month', status: 'in_progress', priority: 2, dependencies: ['t1'] },
  { id: 't3', description: 'Write the report', status: 'pending', priority: 3, dependencies: ['t2'] },
]

export const samples = {
  'todo-list': { todos },
  'planner-response': { summary: 'Three steps: read the file, add it up, and write it down.', needsMorePlanning: false, todos },
  'executor-response': { summary: 'The file has **1,204** rows; the revenue of March is 18,220.50.', taskCompleted: true, nextAction: 'complete', todos: [{ id: 't1', status: 'completed' }] },
  'verifier-response': {
    allCompleted: true,
    userNeedsSatisfied: false,
    overallFeedback: 'Everything was done, but February is missing in the table.',
    improvements: ['Add February to the table'],
    tasks: [
      { id: 't1', completed: true, feedback: 'The file was read to its end.', evidence: ['12.3'] },
      { id: 't2', completed: false, feedback: 'One month is missing.', evidence: [] },
    ],
  },
  'summary-response': { summary: 'Revenue grew by **8 %** from January to March.', verified: true, missing: ['April has no data yet'] },
  'resource-info': { id: 'orders.csv', name: 'orders.csv', kind: 'text/csv', description: 'Orders of the first quarter', status: 'ready' },
  'resource-list': { resources: [{ id: 'res-1', name: 'orders.csv', description: 'Orders' }, { id: 'res-2', name: 'report.html', description: 'The report' }] },
  'html-page': { title: 'A report', html: '<style>p{font:16px/1.5 system-ui;color:#0e6a70}</style><p>A document of its own; cut off from everything.</p>' },
  'task-info': { id: 'task-7', name: 'Quarterly report', description: 'Add up the orders and write a page.', status: 'running', assignee: 'analyst', progress: 0.6 },
} satisfies Record<string, JsonObject>
