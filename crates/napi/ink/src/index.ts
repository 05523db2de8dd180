// Parts of an Ink program that shows a session: where one types and answers, and what it is doing.

export { InputTransition, type InputTransitionProps } from './input-transition.js'
export { PauseIndicator, type PauseIndicatorProps } from './pause-indicator.js'
export { QuestionPrompt, type QuestionPromptProps } from './question-prompt.js'
export { shown, shownLine } from './shown.js'
export { StatusBar, type StatusBarProps } from './status-bar.js'
