import * as v from 'valibot';
import { maxPlanSteps, type PlanStep, planStatuses } from '../../protocol/index.ts';
import type { Tool } from '../tool.ts';
import { defineTool } from './define.ts';
import { done } from './text.ts';

const stepWords = 'a list of steps, each {step, status}';
const longestStep = 500;

/** `UpdatePlan`: replaces the plan of the thread, which its clients show. Changes nothing else. */
export function createUpdatePlan(): Tool {
  return defineTool({
    name: 'UpdatePlan',
    description: 'Shows the user your plan: all steps, in place of the plan before.',
    isReadOnly: true,
    isExtra: true,
    parameters: v.object({
      plan: v.pipe(
        v.array(
          v.object({
            step: v.pipe(
              v.string('a text'),
              v.trim(),
              v.nonEmpty('a text'),
              v.maxLength(longestStep, `at most ${longestStep} characters`),
            ),
            status: v.optional(v.picklist(planStatuses, `one of ${planStatuses.join(', ')}`), 'pending'),
          }),
          stepWords,
        ),
        v.nonEmpty(stepWords),
        v.maxLength(maxPlanSteps, `at most ${maxPlanSteps} steps`),
      ),
    }),
    aliases: { plan: ['steps', 'todos', 'entries'] },
    run: async ({ plan }) => ({ ...done(summaryOf(plan)), plan }),
  });
}

function summaryOf(plan: readonly PlanStep[]): string {
  const completed = plan.filter(({ status }) => status === 'completed').length;
  return `The plan is shown: ${completed} of ${plan.length} steps completed.`;
}
