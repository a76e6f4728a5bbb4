// Where the page begins.

import { createRoot } from 'react-dom/client'
import './styles/index.css'
import { App } from './App'
import { takeToken } from './api'
import { startComponents } from './components'
import { store } from './store/store'

takeToken()
startComponents()
store.start()
const root = document.getElementById('page')
if (root) createRoot(root).render(<App />)
