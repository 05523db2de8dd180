// Components for an Ink program that shows a session: the input with its asks, and the status bar.

export { InputTransition, type InputTransitionProps } from './input-transition.js'
export { PauseIndicator, type PauseIndicatorProps } from './pause-indicator.js'
export { QuestionPrompt, type QuestionPromptProps } from './question-prompt.js'
export { shown, shownLine } from './shown.js'
export { StatusBar, type StatusBarProps } from './status-bar.js'
