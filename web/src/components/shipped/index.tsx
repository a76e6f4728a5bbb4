// Registers what ships. Each display is a component like any other; an adapter lends it to the registry.

import { t } from '../../i18n'
import type { ComponentProps } from '../contract'
import { Frame } from '../Frame'
import { componentRegistry } from '../registry'
import type { Schema } from '../schema'
import { ExecutorResponseDisplay, type ExecutorResponse, PlannerResponseDisplay, type PlannerResponse, SummaryResponseDisplay, type SummaryResponse, VerifierResponseDisplay, type VerifierResponse } from './Responses'
import { ResourceInfo, ResourceList, TaskInfo } from './Resources'
import { samples } from './samples'
import * as schemas from './schemas'
import { type Todo, Todos } from './Todos'

export const PlannerResponseAdapter = ({ props, isGrowing }: ComponentProps<PlannerResponse>) => <PlannerResponseDisplay {...props} isGrowing={isGrowing} />
export const ExecutorResponseAdapter = ({ props, isGrowing }: ComponentProps<ExecutorResponse>) => <ExecutorResponseDisplay {...props} isGrowing={isGrowing} />
export const VerifierResponseAdapter = ({ props, isGrowing }: ComponentProps<VerifierResponse>) => <VerifierResponseDisplay {...props} isGrowing={isGrowing} />
export const SummaryResponseAdapter = ({ props, isGrowing }: ComponentProps<SummaryResponse>) => <SummaryResponseDisplay {...props} isGrowing={isGrowing} />
export const TodoListAdapter = ({ props, isGrowing }: ComponentProps<{ todos?: Todo[]; onClick?: string }>) => (
  <Todos todos={props.todos ?? []} onClick={props.onClick} isGrowing={isGrowing} />
)

/** Whether documents run their scripts is the operator's to say, never the model's. */
export const HtmlPageAdapter = ({ props }: ComponentProps<{ html?: string; title?: string }>) => (
  <Frame html={props.html ?? ''} title={props.title || t('component.page')} />
)

export function initComponents(): void {
  const put = (name: keyof typeof samples, component: Parameters<typeof componentRegistry.register>[1], schema: Schema) =>
    componentRegistry.register(name, component, { schema, sample: samples[name] })
  put('resource-info', ResourceInfo, schemas.resourceInfo)
  put('task-info', TaskInfo, schemas.taskInfo)
  put('resource-list', ResourceList, schemas.resourceList)
  put('planner-response', PlannerResponseAdapter, schemas.planner)
  put('executor-response', ExecutorResponseAdapter, schemas.executor)
  put('verifier-response', VerifierResponseAdapter, schemas.verifier)
  put('todo-list', TodoListAdapter, schemas.todoList)
  put('html-page', HtmlPageAdapter, schemas.htmlPage)
  put('summary-response', SummaryResponseAdapter, schemas.summary)
}
